package release_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/release"
)

// TestAMirrorHasAllOfARelease copies a signed release to another registry with the commands of docs/verify.md. Then the first registry is down: the
// signatures are verified in the mirror, and Stencil is installed from there into another cluster and runs.
func TestAMirrorHasAllOfARelease(t *testing.T) {
	v := signed(t)
	mirror := images.Start()
	t.Cleanup(mirror.Close)
	repository := mirror.Address() + "/copies/stencil"
	v.environment = append(v.environment, "MIRROR="+repository)
	commands := documented(t, "mirror")
	if len(commands) < 4 || !strings.Contains(commands[0], "oras cp --recursive") {
		t.Fatalf("commands %q", commands)
	}
	if output, err := v.sh(t, commands[0]); err != nil {
		t.Fatalf("%s: %v\n%s", commands[0], err, output)
	}

	registry.Down()
	down := true
	up := func() {
		if requests := registry.Up(); down && requests > 0 {
			t.Errorf("%d requests to the first registry", requests)
		}
		down = false
	}
	defer up()
	for _, line := range commands[1:] {
		output, err := v.sh(t, line)
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
		if !strings.HasPrefix(line, "cosign ") {
			continue
		}
		if output, err := v.sh(t, strings.Replace(line, "cosign.pub", "other/cosign.pub", 1)); err == nil {
			t.Errorf("with the key of another signer, %s accepts it:\n%s", line, output)
		}
	}
	pulled, err := os.ReadFile(filepath.Join(v.folder, "mirrored", "stencil-"+tag+".tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(filepath.Join(built.Output, "stencil-"+tag+".tgz")); err != nil || string(want) != string(pulled) {
		t.Errorf("the chart of the mirror is another one: %v", err)
	}

	folder, err := os.MkdirTemp("", "stencil-mirror-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	// The users of the containers enter it.
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	mirrored, err := built.Mirrored(t.Context(), repository, folder)
	if err != nil {
		t.Fatal(err)
	}
	// Its processes end with the context.
	installed, err := platform.Start(context.WithoutCancel(t.Context()), platform.Options{APIServer: true, Chart: mirrored.ChartAddress, Container: mirrored.Container, Values: map[string]any{"imageRegistry": repository}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := installed.Stop(); err != nil {
			t.Error(err)
		}
	})
	if logs := installed.Manager.Logs(); !strings.Contains(logs, version) {
		t.Errorf("another version runs:\n%s", logs)
	}
	template := gen.Template("box", gen.InNamespace("default"), gen.Declares("NAME", "required: true"), gen.Renders("${NAME}", gen.SmallSpec()))
	harness.Must(t, installed.Plane, nil, gen.Manifest(template), "apply", "-f", "-")
	up()
}

// TestHelmPushesTheSameChart pushes the package of the release with Helm, and pulls it by the digest that Helm prints.
func TestHelmPushesTheSameChart(t *testing.T) {
	tools, err := controlplane.Tools(t.Context(), "helm")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	output, err := release.Run(t.Context(), folder, tools["helm"], "push", filepath.Join(built.Output, "stencil-"+tag+".tgz"), "oci://"+registry.Address()+"/helm", "--plain-http")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(output, "Digest: ")
	digest, _, _ := strings.Cut(after, "\n")
	path, err := release.HelmPull(t.Context(), "oci://"+registry.Address()+"/helm/stencil@"+strings.TrimSpace(digest), folder)
	if err != nil {
		t.Fatalf("%v, after\n%s", err, output)
	}
	pulled, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(filepath.Join(built.Output, "stencil-"+tag+".tgz")); err != nil || string(want) != string(pulled) {
		t.Errorf("Helm has pulled another chart than the release has: %v", err)
	}
	var pushed [2]string
	for i, each := range []string{registry.Address() + "/helm/stencil", built.Repository + "/charts/stencil"} {
		reference, err := name.NewTag(each + ":" + tag)
		if err != nil {
			t.Fatal(err)
		}
		image, err := remote.Image(reference)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(manifest.Layers) != 1 {
			t.Fatalf("%s has %d layers", each, len(manifest.Layers))
		}
		pushed[i] = string(manifest.Config.MediaType) + " " + string(manifest.Layers[0].MediaType) + " " + manifest.Layers[0].Digest.String()
	}
	if pushed[0] != pushed[1] {
		t.Errorf("Helm pushes %s, and the release %s", pushed[0], pushed[1])
	}
}
