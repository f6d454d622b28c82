package oci

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

func TestUploadsContinueAfterCuts(t *testing.T) {
	s := newServer(t)
	s.cutUpload = []int{100_000, 0, 0, 0, 200_000, 0}
	pinned := succeed(t, "push", web(t), s.at("web:v1"))
	var ranges []string
	for _, request := range s.did("PATCH") {
		if parts := strings.Split(request, " "); len(parts) == 3 {
			ranges = append(ranges, strings.Split(parts[2], "-")[0])
		}
	}
	if diff := cmp.Diff([]string{"100000", "100000", "100000", "100000", "300000", "300000"}, ranges); diff != "" {
		t.Errorf("ranges (-want +got):\n%s", diff)
	}
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", pinned, "--output-folder", out)
	isWeb(t, out)
}

func TestUploadsBeginAgainWhereTheRegistryHasForgotten(t *testing.T) {
	s := newServer(t)
	s.forgetful = true
	s.cutUpload = []int{100_000, 0, 1}
	pinned := succeed(t, "push", web(t), s.at("web:v1"))
	// One for each upload of the layer, and one of the config.
	if sessions := s.did("POST"); len(sessions) != 5 {
		t.Errorf("requests %v", sessions)
	}
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", pinned, "--output-folder", out)
	isWeb(t, out)
	// Cuts without end are an error.
	broken := newServer(t)
	broken.cutUpload = []int{0, 0, 0, 0, 0, 0}
	code, _, messages := run(t.Context(), "push", web(t), broken.at("web:v1"))
	if code != cli.ExitCluster || !strings.Contains(messages, "sending the disk fedora-44: ") {
		t.Errorf("exit code %d, %s", code, messages)
	}
}
