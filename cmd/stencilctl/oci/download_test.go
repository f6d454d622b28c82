package oci

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

func TestRegistryByTagAndDigest(t *testing.T) {
	s := newServer(t)
	source := web(t)
	pinned := succeed(t, "push", source, s.at("templates/web:v1"))
	if !strings.HasPrefix(pinned, s.at("templates/web@sha256:")) {
		t.Errorf("it prints %s", pinned)
	}
	if sent := s.did("PATCH"); len(sent) != 2 {
		t.Errorf("requests %v", sent)
	}
	for i, from := range []string{s.at("templates/web:v1"), pinned} {
		out := filepath.Join(t.TempDir(), "out")
		succeed(t, "pull", from, "--output-folder", out)
		isWeb(t, out)
		if table := succeed(t, "inspect", from); !strings.Contains(table, "digest "+digestOf(pinned)+"\n") {
			t.Errorf("%d: it prints %s", i, table)
		}
	}
	s.forget()
	if again := succeed(t, "push", source, s.at("templates/web:v2")); again != pinned {
		t.Errorf("equal folders have the digests %s and %s", pinned, again)
	}
	if sent := s.did("P"); len(sent) != 1 {
		t.Errorf("requests %v for what the repository has", sent)
	}
	// The digest is that of the archive, and what is in it is sent unchanged.
	archive := filepath.Join(t.TempDir(), "web.tar")
	succeed(t, "push", source, archive)
	if other := succeed(t, "push", archive, s.at("other/web:v1")); digestOf(other) != digestOf(pinned) {
		t.Errorf("the archive has the digest %s, the folder %s", other, pinned)
	}
	if succeed(t, "push", archive, pinned) != pinned {
		t.Error("a push to the right digest has another result")
	}
	if code, _, messages := run(t.Context(), "push", archive, s.at("web@sha256:"+strings.Repeat("0", 64))); code != cli.ExitUsage || !strings.Contains(messages, "the artifact has the digest sha256:") {
		t.Errorf("exit code %d, %s", code, messages)
	}
}

func TestIndexOfOneArtifact(t *testing.T) {
	s := newServer(t)
	pinned := succeed(t, "push", web(t), s.at("web:v1"))
	reference, err := name.ParseReference(strings.TrimPrefix(pinned, scheme))
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: image})
	if err := remote.WriteIndex(reference.Context().Tag("index"), index); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", s.at("web:index"), "--output-folder", out)
	isWeb(t, out)
	// A signature of the index is one of the artifact in it.
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	key := sign(t, reference.Context(), digest.String())
	if table := succeed(t, "inspect", s.at("web:index"), "--key", key); !strings.Contains(table, ", signed by the key\n") {
		t.Errorf("it prints %s", table)
	}
}

func TestDownloadsContinueAfterCuts(t *testing.T) {
	s := newServer(t)
	succeed(t, "push", web(t), s.at("web:v1"))
	s.forget()
	s.cutDownload = []int{100_000, 0, 0, 0, 200_000, 0, 1}
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", s.at("web:v1"), "--output-folder", out)
	isWeb(t, out)
	var ranges []string
	for _, request := range s.did("GET /v2/web/blobs/") {
		if _, part, is := strings.Cut(request, " bytes="); is {
			ranges = append(ranges, strings.Split(part, "-")[0])
		}
	}
	if diff := cmp.Diff([]string{"100000", "100000", "100000", "100000", "300000", "300000", "300001"}, ranges); diff != "" {
		t.Errorf("ranges (-want +got):\n%s", diff)
	}
}

func TestAnotherPullContinues(t *testing.T) {
	s := newServer(t)
	succeed(t, "push", web(t), s.at("web:v1"))
	out := filepath.Join(t.TempDir(), "out")
	s.cutDownload = []int{250_000, 0, 0, 0, 0, 0}
	code, _, messages := run(t.Context(), "pull", s.at("web:v1"), "--output-folder", out)
	if code != cli.ExitCluster || !strings.Contains(messages, "what was received stays in "+out+".partial: run the command again to continue") {
		t.Fatalf("exit code %d, %s", code, messages)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
	s.forget()
	succeed(t, "pull", s.at("web:v1"), "--output-folder", out)
	isWeb(t, out)
	if blobs := s.did("GET /v2/web/blobs/"); len(blobs) != 2 || !strings.Contains(blobs[1], "bytes=250000-") {
		t.Errorf("requests %v", blobs)
	}
}

func TestDamageOfAnEarlierPullIsFound(t *testing.T) {
	s := newServer(t)
	succeed(t, "push", web(t), s.at("web:v1"))
	for what, damage := range map[string]func(blob []byte) []byte{
		"other content": func(blob []byte) []byte { return bytes.Repeat([]byte{1}, len(blob)) },
		"too much":      func(blob []byte) []byte { return append(blob, make([]byte, 1<<20)...) },
	} {
		out := filepath.Join(t.TempDir(), "out")
		s.cutDownload = []int{250_000, 0, 0, 0, 0, 0}
		if code, _, messages := run(t.Context(), "pull", s.at("web:v1"), "--output-folder", out); code != cli.ExitCluster {
			t.Fatalf("exit code %d, %s", code, messages)
		}
		blobs, err := filepath.Glob(filepath.Join(out+partial, "blobs", "sha256", "*"))
		if err != nil || len(blobs) != 1 {
			t.Fatalf("blobs %v, %v", blobs, err)
		}
		received, err := os.ReadFile(blobs[0])
		if err := errors.Join(err, os.WriteFile(blobs[0], damage(received), 0o644)); err != nil {
			t.Fatal(err)
		}
		succeed(t, "pull", s.at("web:v1"), "--output-folder", out)
		t.Log(what)
		isWeb(t, out)
	}
}
