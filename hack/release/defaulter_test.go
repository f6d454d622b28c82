package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/vmstencil/stencil/hack/release/debian"
)

// deb returns a package with one file.
func deb(t *testing.T, name, path, content string) []byte {
	t.Helper()
	packed := func(path, content string) string {
		var buffer bytes.Buffer
		to, err := xz.NewWriter(&buffer)
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewWriter(to)
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
		for _, each := range []interface{ Close() error }{archive, to} {
			if err := each.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return buffer.String()
	}
	var text strings.Builder
	text.WriteString("!<arch>\n")
	for _, each := range [][2]string{{"debian-binary", "2.0\n"}, {"control.tar.xz", packed("./control", "Package: "+name+"\n")}, {"data.tar.xz", packed(path, content)}} {
		fmt.Fprintf(&text, "%-48s%-10d`\n%s%s", each[0], len(each[1]), each[1], strings.Repeat("\n", len(each[1])%2))
	}
	return []byte(text.String())
}

// debianPlatform is the platform of the small packages.
var debianPlatform = platform{"linux", "amd64"}

// withDefaulter returns a release with a small stencil-defaulter, which is linked with C, and with small packages.
func withDefaulter(t *testing.T, libc string) release {
	t.Helper()
	r := of(t, checkout(t))
	write(t, r.root, "cmd/stencil-defaulter/go.mod", "module example.com/small/defaulter\n\ngo 1.26.0\n")
	write(t, r.root, "cmd/stencil-defaulter/main.go", "package main\n\nimport \"C\"\n\nvar version string\n\nfunc main() { println(version) }\n")
	lock := &debian.Lock{Snapshot: "20261126T000000Z"}
	r.images, r.clients, r.packages = []platform{debianPlatform}, nil, map[platform]*debian.Lock{debianPlatform: lock}
	contents := map[string][]byte{}
	for _, p := range []debian.Package{{Name: "libc6", Version: libc, Architecture: "amd64"}, {Name: "libvirt0", Version: "9.0.0-4+deb12u2", Architecture: "amd64"}} {
		content := deb(t, p.Name, "./usr/lib/"+p.Name+".so", "library")
		p.Path, p.Size, p.SHA256 = "debian/pool/"+p.Name+".deb", int64(len(content)), fmt.Sprintf("%x", sha256.Sum256(content))
		contents["/"+p.Path] = content
		lock.Packages = append(lock.Packages, p)
	}
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) { _, _ = w.Write(contents[request.URL.Path]) }))
	t.Cleanup(mirror.Close)
	r.debian = debian.Source{Mirror: mirror.URL, Archive: mirror.URL, Cache: filepath.Join(t.TempDir(), "cache")}
	return r
}

//suite:long
func TestTheImageWithDebianPackages(t *testing.T) {
	r := withDefaulter(t, "2.36-9+deb12u14")
	sums := r.sums(t)
	image := imagesOf(t, r.output, "stencil-defaulter-debian")["linux/amd64"]
	if image == nil {
		t.Fatal("there is no image for linux/amd64")
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config; got.User != "65532:65532" || !slices.Equal(got.Entrypoint, []string{"/stencil-defaulter"}) || !slices.Equal(got.Env, []string{"STENCIL_PIN_MACHINE_TYPES=false"}) || got.Labels["org.opencontainers.image.licenses"] != "" {
		t.Errorf("config %+v", got)
	}
	want := []string{
		"stencil-defaulter", "usr/", "usr/lib/", "usr/lib/libc6.so", "usr/lib/libvirt0.so", "var/", "var/lib/", "var/lib/dpkg/", "var/lib/dpkg/status.d/",
		"var/lib/dpkg/status.d/libc6", "var/lib/dpkg/status.d/libvirt0",
	}
	if found := slices.Sorted(maps.Keys(filesOf(t, image))); !slices.Equal(found, want) {
		t.Errorf("files %q, want %q", found, want)
	}
	if list, err := os.ReadFile(filepath.Join(r.output, imageList)); err != nil || strings.Count(string(list), "/stencil-defaulter-debian:1.2.3@sha256:") != 1 {
		t.Errorf("%s is %s, %v", imageList, list, err)
	}
	if !slices.Contains(r.repositories(), "stencil-defaulter-debian") {
		t.Errorf("it is not pushed: %q", r.repositories())
	}

	other := withDefaulter(t, "2.36-9+deb12u14")
	if again := other.sums(t); !maps.Equal(sums, again) {
		t.Errorf("another folder makes %v, want %v", again, sums)
	}
}

//suite:long
func TestDebianPackagesAreInSBOMAndProvenance(t *testing.T) {
	r := withDefaulter(t, "2.36-9+deb12u14")
	r.sums(t)
	text, err := os.ReadFile(filepath.Join(r.output, sbomFile("stencil-defaulter-debian", debianPlatform)))
	if err != nil {
		t.Fatal(err)
	}
	document := readSBOM(t, text)
	found := map[string]string{}
	for _, each := range document.Packages {
		if len(each.PackageChecksums) == 1 {
			found[each.PackageExternalReferences[0].Locator] = each.PackageChecksums[0].Value
		}
	}
	text, err = os.ReadFile(filepath.Join(r.output, provenanceFile))
	if err != nil {
		t.Fatal(err)
	}
	var predicate provenance
	if err := json.Unmarshal(text, &predicate); err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, each := range predicate.BuildDefinition.ResolvedDependencies {
		digests[each.URI] = each.Digest["sha256"]
	}
	for _, p := range r.packages[debianPlatform].Packages {
		if found[p.URL()] != p.SHA256 || digests[p.URL()] != p.SHA256 {
			t.Errorf("%s has checksum %q in the SBOM and %q in the provenance, want %q", p.URL(), found[p.URL()], digests[p.URL()], p.SHA256)
		}
	}
	if got := predicate.BuildDefinition.InternalParameters["compiler"]; !strings.Contains(got, "gcc") {
		t.Errorf("compiler %q", got)
	}
}

//suite:long
func TestTheProgramRunsWithTheCLibraryOfThePackages(t *testing.T) {
	r := withDefaulter(t, "2.2-1")
	if err := r.write(t.Context()); err == nil || !strings.Contains(err.Error(), "checking stencil-defaulter for linux/amd64: it needs ") || !strings.Contains(err.Error(), "and the image has 2.2-1: build it with an older glibc") {
		t.Errorf("error %v", err)
	}
}

//suite:long
func TestTheProgramIsLinkedWithTheCLibraryOnly(t *testing.T) {
	r := withDefaulter(t, "2.36-9+deb12u14")
	write(t, r.root, "cmd/stencil-defaulter/main.go", "package main\n\n// #cgo LDFLAGS: -lm -Wl,--no-as-needed\n// #include <math.h>\nimport \"C\"\n\nfunc main() { println(float64(C.cos(C.double(len(version))))) }\n\nvar version string\n")
	if err := r.write(t.Context()); err == nil || !strings.Contains(err.Error(), "it is linked with libm.so.6, and may be with libc.so.6, libdl.so.2, libpthread.so.0, libresolv.so.2 only") {
		t.Errorf("error %v", err)
	}
}

func TestVersionsOfGlibc(t *testing.T) {
	for version, want := range map[string][]int{"2.36-9+deb12u14": {2, 36}, "2.2.5": {2, 2, 5}, "2.36": {2, 36}, "PRIVATE": nil} {
		if got, err := parseLibc(version); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%s is %v, %v", version, got, err)
		}
	}
}
