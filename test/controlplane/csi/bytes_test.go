package csi

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestCopiesAreSparseAndIndependent(t *testing.T) {
	s := store{folder: t.TempDir()}
	const size, offset = 1 << 30, 512<<20 + 17
	if err := s.create("volume-1", true, size); err != nil {
		t.Fatal(err)
	}
	change := func(handle, text string) {
		t.Helper()
		file, err := os.OpenFile(s.path(handle), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteAt([]byte(text), offset)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	change("volume-1", "first")
	if err := s.copy("snapshot-1", "volume-1", 0); err != nil {
		t.Fatal(err)
	}
	if err := s.copy("volume-2", "snapshot-1", 2*size); err != nil {
		t.Fatal(err)
	}
	change("volume-1", "later")
	change("volume-2", "other")
	for handle, want := range map[string]string{"volume-1": "later", "snapshot-1": "first", "volume-2": "other"} {
		file, err := os.Open(s.path(handle))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		_, err = file.ReadAt(got, offset)
		if err := errors.Join(err, file.Close()); err != nil || string(got) != want {
			t.Errorf("%s has %q, want %q: %v", handle, got, want, err)
		}
	}
	info, err := os.Stat(s.path("volume-2"))
	if err != nil {
		t.Fatal(err)
	}
	if blocks := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != 2*size || blocks > 1<<20 {
		t.Errorf("the copy has %d bytes, %d of them allocated", info.Size(), blocks)
	}
}

func TestAFolderIsCopiedWhole(t *testing.T) {
	s := store{folder: t.TempDir()}
	if err := s.create("volume-1", false, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.path("volume-1"), "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.path("volume-1"), "sub", DiskFile), []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.copy("volume-2", "volume-1", 2<<30); err != nil {
		t.Fatal(err)
	}
	if err := s.remove("volume-1"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(s.path("volume-2"), "sub", DiskFile)); err != nil || string(got) != "first" {
		t.Errorf("the copy has %q: %v", got, err)
	}
	if err := s.copy("volume-3", "volume-1", 0); !errors.Is(err, errBytesGone) {
		t.Errorf("a copy of what is gone: %v", err)
	}
	if left, err := os.ReadDir(s.folder); err != nil || len(left) != 1 {
		t.Errorf("want the second volume only, got %v, %v", left, err)
	}
}
