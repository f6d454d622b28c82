package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// checkout writes a small module with programs of the same names, and the chart.
func checkout(t *testing.T) string {
	t.Helper()
	// The chart is outside of the module, so that the Go command would return a cached result for another chart; the runner of the tests sets this
	// variable to a digest that contains it.
	_ = os.Getenv("STENCIL_PRODUCT")
	root := t.TempDir()
	write(t, root, "go.mod", "module example.com/small\n\ngo 1.26.0\n")
	write(t, root, "LICENSE", "Apache-2.0\n")
	write(t, root, changelog, "## v1.2.4\n\nMore.\n\n## v1.2.3\n\nAll of it.\n")
	for _, each := range programs {
		write(t, root, "cmd/"+each.name+"/main.go", "package main\n\nvar version string\n\nfunc main() { println(\""+each.name+"\", version) }\n")
	}
	write(t, root, "cmd/"+client+"/main.go", smallClient)
	if err := os.CopyFS(filepath.Join(root, "charts"), os.DirFS("../../charts")); err != nil {
		t.Fatal(err)
	}
	return root
}

// smallClient writes a manual, as stencilctl does.
const smallClient = `package main

import (
	"os"
	"path/filepath"
)

var version string

func main() {
	if len(os.Args) != 3 || os.Args[1] != "manual" {
		println("stencilctl", version)
		return
	}
	folder := filepath.Join(os.Args[2], "man", "man1")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "stencilctl.1"), []byte(".TH STENCILCTL 1 "+version), 0o644); err != nil {
		panic(err)
	}
}
`

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// of returns a release of a checkout, for few platforms.
func of(t *testing.T, root string) release {
	t.Helper()
	return release{
		root: root, output: filepath.Join(t.TempDir(), "release"), repository: "registry.example.com/stencil",
		origin:  origin{version: "v1.2.3", revision: strings.Repeat("1", 40), created: time.Unix(1700000000, 0).UTC()},
		images:  []platform{{"linux", "amd64"}, {"linux", "arm64"}},
		clients: []platform{{"linux", "amd64"}, {"windows", "amd64"}},
	}
}

// sums writes a release and returns its files by name with their checksums.
func (r release) sums(t *testing.T) map[string]string {
	t.Helper()
	if err := r.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(r.output, checksums))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(content)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	return sums
}

// TestTwoFoldersMakeTheSameRelease builds in a folder that git does not know, and in one with a commit, another time zone, another umask and newer
// files.
//
//suite:long
func TestTwoFoldersMakeTheSameRelease(t *testing.T) {
	first := of(t, checkout(t)).sums(t)

	t.Setenv("TZ", "Pacific/Auckland")
	t.Setenv("LC_ALL", "tr_TR.UTF-8")
	t.Setenv("GOFLAGS", "-tags=debug")
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	other := checkout(t)
	for _, arguments := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first"},
	} {
		if output, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", other}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", arguments, err, output)
		}
	}
	second := of(t, other).sums(t)
	for _, name := range slices.Sorted(maps.Keys(first)) {
		if first[name] != second[name] {
			t.Errorf("%s has checksum %s in one folder and %q in the other", name, first[name], second[name])
		}
	}
	if len(first) != len(second) || len(first) < 10 {
		t.Errorf("%d files from one folder, %d from the other", len(first), len(second))
	}
}

//suite:long
func TestDigestsFollowWhatIsReleased(t *testing.T) {
	root := checkout(t)
	small := func() release {
		r := of(t, root)
		r.images, r.clients = r.images[:1], nil
		return r
	}
	base := small().sums(t)
	for name, tc := range map[string]struct {
		change func(*release)
		// same are files that do not change.
		same []string
	}{
		"the time":     {change: func(r *release) { r.created = r.created.Add(time.Second) }, same: []string{"stencil-crds.yaml"}},
		"the version":  {change: func(r *release) { r.version = "v1.2.4" }, same: []string{"stencil-crds.yaml"}},
		"the revision": {change: func(r *release) { r.revision = strings.Repeat("2", 40) }, same: []string{"stencil-crds.yaml"}},
		"a byte of a program": {
			change: func(r *release) {
				r.root = checkout(t)
				write(t, r.root, "cmd/stencil-apiserver/main.go", "package main\n\nvar version string\n\nfunc main() { println(\"stencil-apiserver.\", version) }\n")
			},
			same: []string{"oci/stencil-manager/index.json", "oci/stencilctl/index.json", "stencil-crds.yaml"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := small()
			tc.change(&changed)
			sums := changed.sums(t)
			for _, file := range []string{"oci/stencil-manager/index.json", "oci/stencil-apiserver/index.json", "oci/stencilctl/index.json", "oci/charts/stencil/index.json", imageList, "stencil-crds.yaml"} {
				if same := sums[file] == base[file]; same != slices.Contains(tc.same, file) {
					t.Errorf("%s is the same: %t", file, same)
				}
			}
		})
	}
}

func TestAnImageHasAProgramAndNothingElse(t *testing.T) {
	r := of(t, checkout(t))
	r.sums(t)
	for program, files := range map[string][]string{
		"stencil-manager":   {"etc/", "etc/ssl/", "etc/ssl/certs/", authoritiesPath, "manager -> stencil-manager", "stencil-manager"},
		"stencil-apiserver": {"apiserver -> stencil-apiserver", "stencil-apiserver"},
		"stencil-mover":     {"etc/", "etc/ssl/", "etc/ssl/certs/", authoritiesPath, "stencil-mover"},
		"stencilctl":        {"etc/", "etc/ssl/", "etc/ssl/certs/", authoritiesPath, "stencilctl"},
	} {
		t.Run(program, func(t *testing.T) {
			images := imagesOf(t, r.output, program)
			if found := slices.Sorted(maps.Keys(images)); !slices.Equal(found, []string{"linux/amd64", "linux/arm64"}) {
				t.Fatalf("platforms %q", found)
			}
			for on, image := range images {
				config, err := image.ConfigFile()
				if err != nil {
					t.Fatal(err)
				}
				if config.OS+"/"+config.Architecture != on || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/" + program}) || !config.Created.Equal(r.created) {
					t.Errorf("%s has config %+v", on, config)
				}
				contents := filesOf(t, image)
				if found := slices.Sorted(maps.Keys(contents)); !slices.Equal(found, files) {
					t.Errorf("%s has files %q, want %q", on, found, files)
				}
				if text, ok := contents[authoritiesPath]; ok && !x509.NewCertPool().AppendCertsFromPEM(text) {
					t.Errorf("%s has no authorities in %s", on, authoritiesPath)
				}
			}
		})
	}
}

// imagesOf returns the images of a layout by their platforms.
func imagesOf(t *testing.T, output, repository string) map[string]v1.Image {
	t.Helper()
	named, err := layout.ImageIndexFromPath(filepath.Join(output, layouts, repository))
	if err != nil {
		t.Fatal(err)
	}
	indexes, err := partial.FindIndexes(named, func(v1.Descriptor) bool { return true })
	if err != nil || len(indexes) != 1 {
		t.Fatalf("%d indexes, %v", len(indexes), err)
	}
	manifest, err := indexes[0].IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, each := range manifest.Manifests {
		if images[each.Platform.String()], err = indexes[0].Image(each.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return images
}

// filesOf returns the content of all files of an image.
func filesOf(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, each := range layers {
		content, err := each.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		untar(t, content, files)
	}
	return files
}

func untar(t *testing.T, from io.Reader, files map[string][]byte) {
	t.Helper()
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := header.Name
		if header.Typeflag == tar.TypeSymlink {
			name += " -> " + header.Linkname
		} else if writable := fs.FileMode(header.Mode) & 0o022; writable != 0 || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s has mode %o and belongs to %d:%d", name, header.Mode, header.Uid, header.Gid)
		}
		if files[name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func untarGz(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	from, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	untar(t, from, files)
	return files
}

func TestOtherReleasesAreNotOverwritten(t *testing.T) {
	r := of(t, checkout(t))
	write(t, r.output, "SHA256SUMS", "")
	if err := r.write(t.Context()); err == nil || !strings.Contains(err.Error(), "is not empty: remove it") {
		t.Errorf("error %v", err)
	}
}

// The release of a checkout before a program was added has no image of it, in its output and in what is pushed.
//
//suite:long
func TestTheReleaseOfAnOlderCheckout(t *testing.T) {
	root := checkout(t)
	r := of(t, root)
	const mover = "stencil-mover"
	if !slices.Contains(programNames(r), mover) {
		t.Errorf("this checkout has programs %q, want %s too", programNames(r), mover)
	}
	if err := os.RemoveAll(filepath.Join(root, "cmd", mover)); err != nil {
		t.Fatal(err)
	}
	sums := r.sums(t)
	if _, written := sums["oci/"+mover+"/index.json"]; written || slices.Contains(r.repositories(), mover) {
		t.Errorf("the older checkout has an image of %s: %t; repositories %q", mover, written, r.repositories())
	}
	if err := os.RemoveAll(filepath.Join(root, "cmd", "stencil-apiserver")); err != nil {
		t.Fatal(err)
	}
	r.output = filepath.Join(t.TempDir(), "release")
	if err := r.write(t.Context()); err == nil || !strings.Contains(err.Error(), "building stencil-apiserver for linux/amd64") {
		t.Errorf("without a program of all checkouts: %v", err)
	}
}

func programNames(r release) (names []string) {
	for _, each := range r.all() {
		names = append(names, each.name)
	}
	return names
}
