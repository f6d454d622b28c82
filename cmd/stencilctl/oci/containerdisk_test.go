package oci

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/disktest"
	"github.com/vmstencil/stencil/internal/testfile"
)

// unpacked checks an image and returns the content of its one file. Everything else that is in the image is compared.
func unpacked(t *testing.T, image v1.Image, file, architecture string) []byte {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil || config.Architecture != architecture || config.OS != "linux" {
		t.Errorf("config %+v, %v", config, err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	compressed, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer compressed.Close()
	expanded, err := zstd.NewReader(compressed)
	if err != nil {
		t.Fatal(err)
	}
	defer expanded.Close()
	sum := sha256.New()
	content := io.TeeReader(expanded, sum)
	var entries []string
	var disk []byte
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, fmt.Sprintf("%c %s %o %d:%d", header.Typeflag, header.Name, header.Mode, header.Uid, header.Gid))
		if header.Typeflag == tar.TypeReg {
			if disk, err = io.ReadAll(reader); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		t.Error(err)
	}
	if id := "sha256:" + hex.EncodeToString(sum.Sum(nil)); len(config.RootFS.DiffIDs) != 1 || config.RootFS.DiffIDs[0].String() != id {
		t.Errorf("the archive has the digest %s, and the config %v", id, config.RootFS.DiffIDs)
	}
	if mediaType, err := layers[0].MediaType(); mediaType != types.OCILayerZStd || err != nil {
		t.Errorf("the layer has the type %s, %v", mediaType, err)
	}
	if diff := cmp.Diff([]string{"5 disk/ 755 107:107", "0 disk/" + file + " 644 107:107"}, entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	return disk
}

// stored returns an image of the registry by its reference.
func (s *server) stored(t *testing.T, reference string) v1.Image {
	t.Helper()
	parsed, err := name.ParseReference(reference, name.StrictValidation)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestContainerDisksOfATemplate(t *testing.T) {
	s := newServer(t)
	source := web(t)
	first := succeed(t, "container-disk", source, s.at("disks/web:v1"))
	if !strings.HasPrefix(first, s.host+"/disks/web@sha256:") {
		t.Errorf("it prints %s", first)
	}
	if got := unpacked(t, s.stored(t, s.host+"/disks/web:v1"), "disk.raw", "amd64"); !bytes.Equal(got, content()) {
		t.Error("the image has another disk")
	}
	s.forget()
	if again := succeed(t, "container-disk", filepath.Join(source, "fedora.44.raw"), s.at("disks/web:v2")); again != first {
		t.Errorf("equal disks have the images %s and %s", first, again)
	}
	if sent := s.did("P"); len(sent) != 1 {
		t.Errorf("requests %v for what the repository has", sent)
	}
}

func TestEachDiskOfATemplateBecomesAnImage(t *testing.T) {
	s := newServer(t)
	source := folderWith(t, map[string]string{
		"db.yaml":  strings.Replace(vm, "      - name: root\n", "      - name: logs\n        persistentVolumeClaim:\n          claimName: logs\n      - name: root\n", 1),
		"data.raw": string(content()), "logs.raw": "log",
	})
	var result struct {
		Images []struct{ Claim, Image, Architecture, Digest string }
	}
	if err := json.Unmarshal([]byte(succeed(t, "container-disk", source, s.at("db:v1"), "-o", "json")), &result); err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{"data": content(), "logs": []byte("log")}
	if len(result.Images) != len(want) {
		t.Fatalf("images %+v", result.Images)
	}
	for _, each := range result.Images {
		if each.Image != s.host+"/db-"+each.Claim+"@"+each.Digest || each.Architecture != "arm64" {
			t.Errorf("image %+v", each)
		}
		s.stored(t, s.host+"/db-"+each.Claim+":v1")
		if got := unpacked(t, s.stored(t, each.Image), "disk.raw", "arm64"); !bytes.Equal(got, want[each.Claim]) {
			t.Errorf("the image of %s has another disk", each.Claim)
		}
	}
}

func TestContainerDiskOfAQCOW2ImageInAnArchive(t *testing.T) {
	temp := t.TempDir()
	raw, archive := filepath.Join(temp, "fedora.raw"), filepath.Join(temp, "fedora.tar")
	if err := os.WriteFile(raw, content(), 0o600); err != nil {
		t.Fatal(err)
	}
	disk := disktest.Convert(t, raw, "qcow2")
	if out := succeed(t, "container-disk", disk, archive, "--architecture", "s390x"); out != archive {
		t.Errorf("it prints %s", out)
	}
	folder := filepath.Join(temp, "layout")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.ArtifactType != "" || manifest.Manifests[0].Platform.Architecture != "s390x" {
		t.Fatalf("index %+v, %v", manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(unpacked(t, image, "disk.qcow2", "s390x"), testfile.Read(t, disk)) {
		t.Error("the image has another disk")
	}
}

func TestUploadsOfContainerDisksContinueAfterCuts(t *testing.T) {
	s := newServer(t)
	s.cutUpload = []int{100_000, 50_000}
	succeed(t, "container-disk", web(t), s.at("disks/web:v1"))
	if sent := s.did("PATCH"); len(sent) < 3 {
		t.Errorf("requests %v", sent)
	}
	if got := unpacked(t, s.stored(t, s.host+"/disks/web:v1"), "disk.raw", "amd64"); !bytes.Equal(got, content()) {
		t.Error("the image has another disk")
	}
}

func TestDisksThatBecomeNoImages(t *testing.T) {
	s := newServer(t)
	temp := t.TempDir()
	base := disktest.Convert(t, disktest.Raw(t, disktest.MiB), "qcow2")
	overlay := disktest.Made(t, base, "overlay.qcow2", "create -q -f qcow2 -b disk.qcow2 -F qcow2 overlay.qcow2")
	disguised := filepath.Join(temp, "disguised.raw")
	if err := os.Symlink(base, disguised); err != nil {
		t.Fatal(err)
	}
	two := folderWith(t, map[string]string{
		"db.yaml":  strings.Replace(vm, "      - name: root\n", "      - name: logs\n        persistentVolumeClaim:\n          claimName: logs\n      - name: root\n", 1),
		"data.raw": "data", "logs.raw": "log",
	})
	for name, tc := range map[string]struct {
		from, to string
		want     string
	}{
		"a qcow2 image with a backing file":             {overlay, s.at("x:v1"), "it has the backing file"},
		"a raw disk that KubeVirt would read otherwise": {disguised, s.at("x:v1"), "a raw disk that begins like a qcow2 image, as which KubeVirt would read it"},
		"several disks to an archive":                   {two, filepath.Join(temp, "x.tar"), "has 2 disks, and an archive has one: name the file of a disk"},
		"several disks to a digest":                     {two, s.at("x@sha256:" + strings.Repeat("0", 64)), "several disks need HOST/REPOSITORY:TAG"},
		"a folder without the disk":                     {folderWith(t, map[string]string{"web.yaml": template}), s.at("x:v1"), "fedora.44.raw: no such file"},
		"an archive that exists":                        {base, base, "disk.qcow2 exists"},
		"no file":                                       {filepath.Join(temp, "none"), s.at("x:v1"), "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, messages := run(t.Context(), "container-disk", tc.from, tc.to)
			if code != cli.ExitUsage || out != "" || !strings.Contains(messages, tc.want) {
				t.Errorf("exit code %d, %q, %s", code, out, messages)
			}
		})
	}
	if sent := s.did("P"); len(sent) != 0 {
		t.Errorf("requests %v", sent)
	}
}
