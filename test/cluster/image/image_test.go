package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// TestAnImageInAStoreHasTheFilesOfItsLayers writes a root file system and more files to an image, and reads it from a store.
func TestAnImageInAStoreHasTheFilesOfItsLayers(t *testing.T) {
	folder, root := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{"etc/passwd": "root", "usr/share/doc/readme": "left out", "usr/bin/tool": "program"} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/bin", filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	base, err := NewLayer(filepath.Join(folder, "base.tar"), root)
	if err != nil {
		t.Fatal(err)
	}
	added, err := NewLayer(filepath.Join(folder, "added.tar"), "",
		File{Name: "etc/passwd", Mode: 0o644, Content: "qemu"}, File{Name: "tmp/", Mode: 0o1777}, File{Name: "usr/bin/launcher", Mode: 0o755, From: base.path, Owner: 107, BindsPorts: true})
	if err != nil {
		t.Fatal(err)
	}
	made, err := New("0", nil, base, added)
	if err != nil {
		t.Fatal(err)
	}
	store, err := Open(filepath.Join(folder, "store"))
	if err != nil {
		t.Fatal(err)
	}
	const reference = "example.com/images/one:1"
	if err := store.Add(reference, made); err != nil {
		t.Fatal(err)
	}
	if store, err = Open(filepath.Join(folder, "store")); err != nil {
		t.Fatal(err)
	}
	images, err := store.All()
	if err != nil || images[reference] == nil {
		t.Fatalf("the store has %v, %v", images, err)
	}
	got, capabilities := map[string]string{}, map[string]bool{}
	content := mutate.Extract(images[reference])
	defer content.Close()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch header.Typeflag {
		case tar.TypeReg:
			text, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			got[header.Name] = string(text[:min(len(text), 10)])
		case tar.TypeSymlink:
			got[header.Name] = "-> " + header.Linkname
		}
		capabilities[header.Name] = header.PAXRecords["SCHILY.xattr.security.capability"] != ""
	}
	want := map[string]string{"etc/passwd": "qemu", "usr/bin/tool": "program", "bin": "-> usr/bin", "usr/bin/launcher": got["usr/bin/launcher"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if !capabilities["usr/bin/launcher"] || capabilities["usr/bin/tool"] {
		t.Errorf("files with capabilities: %v", capabilities)
	}
}
