package files_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
)

func TestNamesDoNotLeadOutOfAFolder(t *testing.T) {
	outer := t.TempDir()
	inner := filepath.Join(outer, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outer, "x.raw"), []byte("another disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := files.Folder{Streams: cli.Streams{Out: &bytes.Buffer{}}, Path: inner}
	for _, name := range []string{"../y", "/y", "a/../../y", "..", ".", ""} {
		if err := folder.File(name, func(*os.File) error { return nil }); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q was written: %v", name, err)
		}
	}
	if file, err := files.OpenDisk(inner, "../x"); err == nil || err.Error() != `"../x.raw" is no name of a file in `+inner {
		t.Errorf("opened %v: %v", file, err)
	}
	if entries, err := os.ReadDir(outer); err != nil || len(entries) != 2 {
		t.Errorf("%v, written: %v", err, entries)
	}
}

func TestANewFolderIsNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	if err := files.NewFolder(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if err := files.NewFolder(path); cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("an existing folder: %v", err)
	}
}
