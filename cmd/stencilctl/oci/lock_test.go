package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
)

func TestTwoPullsToOneFolder(t *testing.T) {
	s := newServer(t)
	succeed(t, "push", web(t), s.at("web:v1"))
	out := filepath.Join(t.TempDir(), "out")
	// As another pull has it.
	lock, err := files.NewLock(out + partial + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	code, _, messages := run(t.Context(), "pull", s.at("web:v1"), "--output-folder", out)
	if code != cli.ExitUsage || !strings.Contains(messages, "another pull writes to "+out+": wait until it ends, or name another folder") {
		t.Errorf("exit code %d, %s", code, messages)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	succeed(t, "pull", s.at("web:v1"), "--output-folder", out)
	isWeb(t, out)
	if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v beside the folder", entries, err)
	}
}
