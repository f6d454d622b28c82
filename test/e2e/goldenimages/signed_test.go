package goldenimages_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
)

// signer is a key pair of cosign.
type signer struct{ program, folder string }

func newSigner(t *testing.T) signer {
	t.Helper()
	tools, err := controlplane.Tools(t.Context(), "cosign")
	if err != nil {
		t.Fatal(err)
	}
	s := signer{tools["cosign"], t.TempDir()}
	s.run(t, "generate-key-pair")
	return s
}

func (s signer) run(t *testing.T, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.program, arguments...)
	command.Dir = s.folder
	command.Env = append(os.Environ(), "COSIGN_PASSWORD=", "HOME="+s.folder)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("cosign %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// sign signs an image without a transparency log, which would need the internet.
func (s signer) sign(t *testing.T, repository, digest string, more ...string) {
	t.Helper()
	s.run(t, append(append([]string{"sign", "--key", "cosign.key", "--use-signing-config=false", "--tlog-upload=false", "--yes"}, more...), images+"/"+repository+"@"+digest)...)
}

// public is the public key as a text in JSON.
func (s signer) public(t *testing.T) string {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(s.folder, "cosign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(pem))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOnlySignedImagesAreImported signs images with cosign itself: as bundles, which it writes since version 3, and in tags, as it did before.
func TestOnlySignedImagesAreImported(t *testing.T) {
	own := namespace(t)
	const repository = "signed/fedora"
	ours, theirs := newSigner(t), newSigner(t)
	first := push(t, repository, "latest")
	ours.sign(t, repository, first)
	must(t, own, manifest("fedora", repository, fmt.Sprintf(`, channels: [{name: next}], verify: {publicKeys: [%s]}`, ours.public(t))), "create", "-f", "-")
	becomes(t, own, "fedora", "Verified", "True Signed: DataSource fedora stands for "+first+", which is signed")
	standsFor(t, own, "fedora", first)

	second := push(t, repository, "latest")
	notSigned := fmt.Sprintf("False NotSigned: %s/%s:latest, %s: no signature of spec.verify.publicKeys", images, repository, second)
	refresh(t, own, "fedora", "unsigned")
	becomes(t, own, "fedora", "UpToDate", notSigned)
	theirs.sign(t, repository, second)
	theirs.sign(t, repository, second, "--new-bundle-format=false")
	refresh(t, own, "fedora", "signed by another")
	eventually(t, "the signatures of another key are checked", func() error {
		if image := get(t, own, "fedora"); image.Status.Refreshed != "signed by another" {
			return fmt.Errorf("status %+v", image.Status)
		}
		return nil
	})
	becomes(t, own, "fedora", "Verified", notSigned)
	// An image that is not signed cannot be pinned either.
	patch(t, own, "fedora", fmt.Sprintf(`{"digest": %q}`, second))
	becomes(t, own, "fedora", "UpToDate", fmt.Sprintf("False NotSigned: spec.digest: %s: no signature of spec.verify.publicKeys", second))
	patch(t, own, "fedora", `{"digest": null}`)
	if got := must(t, own, "", "get", "dv,pvc", "-o", "name"); strings.Contains(got, second[7:19]) {
		t.Errorf("it was imported: %s", got)
	}
	standsFor(t, own, "fedora", first)
	events := must(t, own, "", "get", "events", "--field-selector=involvedObject.kind=GoldenImage,reason=NotSigned", "-o", "jsonpath={.items[*].message}")
	if !strings.Contains(events, second) {
		t.Errorf("events %s", events)
	}

	ours.sign(t, repository, second, "--new-bundle-format=false")
	refresh(t, own, "fedora", "signed")
	standsFor(t, own, "fedora", second)
	standsFor(t, own, "fedora-next", second)
	becomes(t, own, "fedora", "Verified", "True Signed: DataSource fedora stands for "+second)

	// Another key: what is there stays, and is not verified.
	patch(t, own, "fedora", fmt.Sprintf(`{"verify": {"publicKeys": [%s]}}`, newSigner(t).public(t)))
	becomes(t, own, "fedora", "Verified", fmt.Sprintf("%s; DataSource fedora stands for %s, whose signature was not verified", notSigned, second))
	standsFor(t, own, "fedora", second)
	patch(t, own, "fedora", `{"verify": null}`)
	becomes(t, own, "fedora", "UpToDate", "True Latest")
	if got := condition(get(t, own, "fedora"), "Verified"); got != "" {
		t.Errorf("Verified is %s without spec.verify", got)
	}
}

// TestTheSignatureOfAnIndexIsThatOfItsImages signs only the manifest that names an image for each architecture, as cosign does without --recursive.
func TestTheSignatureOfAnIndexIsThatOfItsImages(t *testing.T) {
	own := namespace(t)
	const repository = "signed/index"
	key := newSigner(t)
	first := pushIndex(t, repository, "latest", "amd64", "arm64")
	key.sign(t, repository, first[""])
	must(t, own, manifest("fedora", repository, fmt.Sprintf(`, architectures: [amd64, arm64], verify: {publicKeys: [%s]}`, key.public(t))), "create", "-f", "-")
	for _, architecture := range []string{"amd64", "arm64"} {
		standsFor(t, own, "fedora-"+architecture, first[architecture])
	}
	second := pushIndex(t, repository, "latest", "amd64", "arm64")
	// The image of one architecture is signed, that of the other is not.
	key.sign(t, repository, second["amd64"])
	refresh(t, own, "fedora", "1")
	becomes(t, own, "fedora", "UpToDate", fmt.Sprintf("False NotSigned: %s/%s:latest, %s: no signature of spec.verify.publicKeys", images, repository, second["arm64"]))
	patch(t, own, "fedora", fmt.Sprintf(`{"digest": %q}`, first[""]))
	becomes(t, own, "fedora", "Verified", "False NotSigned")
	key.sign(t, repository, second[""])
	refresh(t, own, "fedora", "2")
	becomes(t, own, "fedora", "UpToDate", "True Pinned")
	patch(t, own, "fedora", `{"digest": null}`)
	for _, architecture := range []string{"amd64", "arm64"} {
		standsFor(t, own, "fedora-"+architecture, second[architecture])
	}
	becomes(t, own, "fedora", "Verified", "True Signed")
}
