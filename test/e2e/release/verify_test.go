package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/release"
)

// verifier is a user who has downloaded the files of a release and the public key.
type verifier struct {
	folder      string
	environment []string
}

// sh runs a command of the documentation.
func (v verifier) sh(t *testing.T, line string) (string, error) {
	t.Helper()
	if strings.HasPrefix(line, "cosign verify") {
		// The test has no transparency log.
		line += " --insecure-ignore-tlog=true"
	}
	if strings.Contains(line, "helm pull") {
		line += " --plain-http"
	}
	line = strings.Replace(line, "oras cp", "oras cp --from-plain-http --to-plain-http", 1)
	command := exec.CommandContext(t.Context(), "sh", "-c", line)
	command.Dir, command.Env = v.folder, append(os.Environ(), v.environment...)
	output, err := command.CombinedOutput()
	return string(output), err
}

// signed signs the release with a new key, and returns a user who has the files, the public key, and that of another signer in the folder other.
func signed(t *testing.T) verifier {
	t.Helper()
	tools, err := controlplane.Tools(t.Context(), "cosign", "helm", "oras")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for tool, path := range tools {
		if err := os.Symlink(path, filepath.Join(folder, tool)); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	// The tools stay where they are.
	if _, set := os.LookupEnv("STENCIL_CACHE"); !set {
		t.Setenv("STENCIL_CACHE", filepath.Join(cache, "stencil"))
	}
	t.Setenv("HOME", folder)
	t.Setenv("COSIGN_PASSWORD", "")
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	other := filepath.Join(folder, "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, keys := range []string{folder, other} {
		if _, err := release.Run(t.Context(), keys, tools["cosign"], "generate-key-pair"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(folder, os.DirFS(built.Output)); err != nil {
		t.Fatal(err)
	}
	if output, err := release.Run(t.Context(), folder, built.Command, "-sign", "-version="+version, "-output=.", "-repository="+built.Repository,
		"-cosign="+tools["cosign"], "-key=cosign.key", "-offline"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return verifier{folder: folder, environment: []string{"REPOSITORY=" + built.Repository, "VERSION=" + tag, "IMAGE_LINUX=" + digestOf(t, "stencil-manager")}}
}

// documented returns the commands of docs/verify.md: those about mirrors, which have a variable of that name, or all others.
func documented(t *testing.T, about string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(built.Root, "docs", "verify.md"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		line, found := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if found && strings.Contains(line, "$MIRROR") == (about == "mirror") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestASignedReleaseIsVerified signs the release with a key, and runs the commands of docs/verify.md.
func TestASignedReleaseIsVerified(t *testing.T) {
	v := signed(t)
	commands := documented(t, "release")
	for _, line := range commands {
		output, err := v.sh(t, line)
		t.Logf("$ %s\n%s", line, cut(output))
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
	if len(commands) < 9 {
		t.Errorf("docs/verify.md has %d commands", len(commands))
	}

	// The tag refers to an image that is not part of the release.
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	to, err := name.NewTag(built.Repository + "/stencil-manager:forged")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(to, image); err != nil {
		t.Fatal(err)
	}
	if output, err := v.sh(t, "cosign verify --key cosign.pub $REPOSITORY/stencil-manager:forged"); err == nil {
		t.Errorf("an image that was not signed is accepted:\n%s", output)
	}
	flip(t, filepath.Join(v.folder, "SHA256SUMS"))
	if output, err := v.sh(t, "cosign verify-blob --key cosign.pub --bundle SHA256SUMS.sigstore.json SHA256SUMS"); err == nil {
		t.Errorf("changed checksums are accepted:\n%s", output)
	}
}

// digestOf returns the digest of the image of a program for this host.
func digestOf(t *testing.T, program string) string {
	t.Helper()
	reference, err := name.NewTag(built.Repository + "/" + program + ":" + tag)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(reference)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("the index has %+v", manifest.Manifests)
	}
	return manifest.Manifests[0].Digest.String()
}

// cut returns the beginning of an output.
func cut(output string) string {
	const longest = 600
	if len(output) > longest {
		return output[:longest] + "…"
	}
	return output
}
