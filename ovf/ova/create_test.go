package ova_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/ova"
)

// create writes an OVA with Create.
func create(t *testing.T, e *ovf.Envelope, options ova.WriterOptions, content func(w io.Writer, i int) error) ([]byte, error) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "vm.ova"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := ova.Create(file, e, options, content); err != nil {
		return nil, err
	}
	made, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return made, nil
}

// members are the headers and the contents of an archive, by name, and the names in their order.
func members(t *testing.T, raw []byte) (all map[string]string, names []string) {
	t.Helper()
	all = map[string]string{}
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, names
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(header.Name, ".cert") {
			// Signatures differ.
			content = content[:40]
		}
		all[header.Name] = fmt.Sprintf("%+v\n%s", *header, content)
		names = append(names, header.Name)
	}
}

func TestAnOVAInOnePassHasTheMembersOfTheOther(t *testing.T) {
	contents := []string{"", "a disk", strings.Repeat("x", 512), strings.Repeat("0123456789", 300_001), "{}"}
	for name, options := range map[string]ova.WriterOptions{"unsigned": {Name: "vm"}, "signed": {Name: strings.Repeat("long", 50), Signer: signer(t)}} {
		for count := range contents {
			var files []ovf.File
			for i, content := range contents[:count] {
				href := fmt.Sprintf("disk-%d.raw", i)
				if i == 2 {
					href = strings.Repeat("n", 200) + href
				}
				files = append(files, ovf.File{ID: fmt.Sprint(i), Href: href, Size: int64(len(content))})
			}
			want := write(t, envelope(files...), options, contents[:count]...)
			for i := range files {
				files[i].Size = 77
			}
			e := envelope(files...)
			got, err := create(t, e, options, func(w io.Writer, i int) error {
				// In small writes, as encoders do.
				_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{strings.NewReader(contents[i])}, make([]byte, 1000))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			gotMembers, names := members(t, got)
			wantMembers, _ := members(t, want)
			if diff := cmp.Diff(wantMembers, gotMembers); diff != "" || len(got) != len(want) {
				t.Errorf("%s, %d files: %d bytes, want %d\n%.1000s", name, count, len(got), len(want), diff)
			}
			if names[0] != options.Name+".ovf" || names[1] != options.Name+".mf" {
				t.Errorf("the members are %q", names)
			}
			stream := ova.NewReader(bytes.NewReader(got))
			for read := 0; ; read++ {
				entry, err := stream.Next()
				if errors.Is(err, io.EOF) && read == count {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, entry); err != nil {
					t.Fatal(err)
				}
				if sum := sha256.Sum256([]byte(contents[read])); !bytes.Equal(entry.Digest(), sum[:]) {
					t.Errorf("the digest of %s is %x", entry.Member.Name, entry.Digest())
				}
			}
			for i := range e.Files {
				if e.Files[i].Size != int64(len(contents[i])) {
					t.Errorf("file %d has the size %d", i, e.Files[i].Size)
				}
			}
		}
	}
}

func TestAnOVAInOnePassFails(t *testing.T) {
	errDisk := errors.New("the disk has gone")
	failing := func(io.Writer, int) error { return errDisk }
	for name, tc := range map[string]struct {
		file ovf.File
		name string
		want string
	}{
		"content":  {ovf.File{ID: "1", Href: "a.vmdk"}, "vm", `writing the member "a.vmdk" of an OVA: the disk has gone`},
		"chunks":   {ovf.File{ID: "1", Href: "a.vmdk", ChunkSize: 5}, "vm", `writing an OVA: the file "a.vmdk" has chunks`},
		"name":     {ovf.File{ID: "1", Href: "../a.vmdk"}, "vm", `"../a.vmdk"`},
		"same":     {ovf.File{ID: "1", Href: "vm.mf"}, "vm", `"vm.mf"`},
		"too long": {ovf.File{ID: "1", Href: "a.vmdk"}, strings.Repeat("v", 255), "has a name that is not accepted"},
	} {
		if _, err := create(t, envelope(tc.file), ova.WriterOptions{Name: tc.name}, failing); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}
