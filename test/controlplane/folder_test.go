package controlplane

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyFoldersWithoutAnOwnerAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	owned, err := openFolder("")
	if err != nil {
		t.Fatal(err)
	}
	defer owned.close()
	orphan, err := openFolder("")
	if err != nil {
		t.Fatal(err)
	}
	// The kernel does this when the owner's process ends.
	orphan.owner.Close()
	foreign := filepath.Join(os.TempDir(), folderPrefix+"of-somebody-else")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}

	removeOrphans(os.TempDir())

	for _, path := range []string{owned.path, foreign} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("removed although it was not an orphan: %v", err)
		}
	}
	if _, err := os.Stat(orphan.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the orphan is still there: %v", err)
	}
}
