package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// base pushes a stand-in for KubeVirt's virt-launcher image, as Docker's tools write it, to a registry on loopback, and returns its reference.
func base(t *testing.T, platforms ...platform) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	index := mutate.IndexMediaType(v1.ImageIndex(empty.Index), types.DockerManifestList)
	for _, on := range platforms {
		content, err := tarGz([]entry{{name: "usr/bin/virt-launcher", mode: 0o755, content: []byte(on.arch)}}, of(t, t.TempDir()).created)
		if err != nil {
			t.Fatal(err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err != nil {
			t.Fatal(err)
		}
		image, err := mutate.AppendLayers(empty.Image, layer)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		config.OS, config.Architecture = on.os, on.arch
		config.Config = v1.Config{User: "107", Entrypoint: []string{"/usr/bin/virt-launcher"}, Cmd: []string{"--help"}, Env: []string{"PATH=/usr/bin"}, Labels: map[string]string{"vendor": "KubeVirt"}}
		if image, err = mutate.ConfigFile(image, config); err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: on.os, Architecture: on.arch}}})
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	reference := strings.TrimPrefix(server.URL, "http://") + "/kubevirt/virt-launcher:v1.8.2"
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	return reference + "@" + digest.String()
}

// onBase returns a release with a small stencil-defaulter without C.
func onBase(t *testing.T, reference string) release {
	t.Helper()
	r := of(t, checkout(t))
	write(t, r.root, "cmd/stencil-defaulter/go.mod", "module example.com/small/defaulter\n\ngo 1.26.0\n")
	write(t, r.root, "cmd/stencil-defaulter/main.go", "package main\n\nvar version string\n\nfunc main() { println(version) }\n")
	r.clients = nil
	var err error
	if r.launcher, err = pullLauncher(t.Context(), reference); err != nil {
		t.Fatal(err)
	}
	return r
}

//suite:long
func TestTheImageOnVirtLauncher(t *testing.T) {
	reference := base(t, platform{"linux", "amd64"}, platform{"linux", "arm64"}, platform{"linux", "s390x"})
	r := onBase(t, reference)
	sums := r.sums(t)
	images := imagesOf(t, r.output, "stencil-defaulter")
	if found := slices.Sorted(maps.Keys(images)); !slices.Equal(found, []string{"linux/amd64", "linux/arm64"}) {
		t.Fatalf("images for %v", found)
	}
	for on, image := range images {
		layers, err := image.Layers()
		if err != nil {
			t.Fatal(err)
		}
		original, err := r.launcher.image(platform{"linux", strings.TrimPrefix(on, "linux/")})
		if err != nil {
			t.Fatal(err)
		}
		before, err := original.Layers()
		if err != nil {
			t.Fatal(err)
		}
		if len(layers) != 2 || len(before) != 1 {
			t.Fatalf("%s: %d layers, want that of the base and one more", on, len(layers))
		}
		for i, want := range []v1.Layer{before[0], nil} {
			kind, err := layers[i].MediaType()
			if err != nil || kind != types.DockerLayer {
				t.Errorf("%s: layer %d has type %s, %v", on, i, kind, err)
			}
			if want == nil {
				continue
			}
			digest, err := layers[i].Digest()
			if wanted, _ := want.Digest(); err != nil || digest != wanted {
				t.Errorf("%s: layer %d is %s, want %s", on, i, digest, wanted)
			}
		}
		files := filesOf(t, image)
		if found := slices.Sorted(maps.Keys(files)); !slices.Equal(found, []string{"stencil-defaulter", "usr/", "usr/bin/", "usr/bin/virt-launcher"}) {
			t.Errorf("%s: files %q", on, found)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Config; got.User != "65532:65532" || !slices.Equal(got.Entrypoint, []string{"/stencil-defaulter"}) || len(got.Cmd) > 0 ||
			!slices.Equal(got.Env, []string{"PATH=/usr/bin", "STENCIL_KUBEVIRT=v1.8.2"}) || got.Labels["vendor"] != "KubeVirt" || got.Labels["org.opencontainers.image.version"] != "v1.2.3" {
			t.Errorf("%s: config %+v", on, got)
		}
	}
	packaged, err := os.ReadFile(filepath.Join(r.output, "stencil-1.2.3.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(r.output, imageList))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(list), "/stencil-defaulter:1.2.3@")
	digest, _, _ := strings.Cut(after, "\n")
	if values := string(untarGz(t, packaged)["stencil/values.yaml"]); digest == "" || !strings.Contains(values, "digest: "+digest) {
		t.Errorf("the chart does not have the digest %q", digest)
	}
	if !slices.Contains(r.repositories(), "stencil-defaulter") {
		t.Errorf("it is not pushed: %q", r.repositories())
	}

	text, err := os.ReadFile(filepath.Join(r.output, provenanceFile))
	if err != nil {
		t.Fatal(err)
	}
	var predicate provenance
	if err := json.Unmarshal(text, &predicate); err != nil {
		t.Fatal(err)
	}
	want := r.launcher.dependency()
	if !slices.ContainsFunc(predicate.BuildDefinition.ResolvedDependencies, func(each resource) bool { return each.URI == want.URI && maps.Equal(each.Digest, want.Digest) }) {
		t.Errorf("the provenance does not have %+v:\n%s", want, text)
	}
	text, err = os.ReadFile(filepath.Join(r.output, sbomFile("stencil-defaulter", platform{"linux", "arm64"})))
	if err != nil || !strings.Contains(string(text), want.Digest["sha256"]) {
		t.Errorf("the SBOM does not have the base: %v\n%s", err, text)
	}

	if again := onBase(t, reference).sums(t); !maps.Equal(sums, again) {
		t.Errorf("another folder makes %v, want %v", again, sums)
	}
}

func TestReferencesOfVirtLauncher(t *testing.T) {
	reference := base(t, platform{"linux", "amd64"})
	repository, digest, _ := strings.Cut(reference, ":v1.8.2")
	for name, tc := range map[string]struct{ reference, want string }{
		"no digest":          {repository + ":v1.8.2", "want tag and digest, such as quay.io/kubevirt/virt-launcher:v1.8.2@sha256:"},
		"no tag":             {repository + digest, "want tag and digest"},
		"a tag of no number": {repository + ":latest" + digest, "want tag and digest"},
		"a short digest":     {reference[:len(reference)-1], "want tag and digest"},
		"an unknown digest":  {repository + ":v1.8.2@sha256:" + strings.Repeat("0", 64), "which must be an image for several platforms"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := pullLauncher(t.Context(), tc.reference); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
	r := onBase(t, reference)
	if err := r.checkLauncher(); err == nil || !strings.Contains(err.Error(), "has no image for linux/arm64") {
		t.Errorf("a platform that the base does not have: error %v", err)
	}
}
