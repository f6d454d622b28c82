package release_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/release"
)

// TestAnotherFolderMakesTheSameRelease builds the real programs once more, in a clone.
func TestAnotherFolderMakesTheSameRelease(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "another", "folder")
	must := func(folder, program string, arguments ...string) string {
		t.Helper()
		output, err := release.Run(t.Context(), folder, program, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		return output
	}
	must(built.Root, "git", "clone", "-q", "--no-hardlinks", built.Root, clone)
	// What is not committed.
	changed := must(built.Root, "git", "diff", "--name-only", "--no-renames", "HEAD") + must(built.Root, "git", "ls-files", "--others", "--exclude-standard")
	for path := range strings.Lines(changed) {
		path = strings.TrimSpace(path)
		from, to := filepath.Join(built.Root, path), filepath.Join(clone, path)
		content, err := os.ReadFile(from)
		if os.IsNotExist(err) {
			err = os.Remove(to)
		} else if err == nil {
			if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
				err = os.WriteFile(to, content, 0o755)
			}
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	output := filepath.Join(t.TempDir(), "release")
	if err := built.Write(t.Context(), clone, output); err != nil {
		t.Fatal(err)
	}
	if here, there := sums(t, built.Output), sums(t, output); here != there {
		t.Errorf("the checksums are\n%sand in another folder\n%s", here, there)
	}
}

func sums(t *testing.T, output string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(output, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestAFlippedByteIsNoticed changes one byte of a file, which sha256sum reports, and one of the program in an image, which is not pushed.
func TestAFlippedByteIsNoticed(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "release")
	if err := os.CopyFS(copied, os.DirFS(built.Output)); err != nil {
		t.Fatal(err)
	}
	check := func() (string, error) {
		command := exec.CommandContext(t.Context(), "sha256sum", "--check", "--quiet", "SHA256SUMS")
		command.Dir = copied
		output, err := command.CombinedOutput()
		return string(output), err
	}
	if output, err := check(); err != nil {
		t.Fatalf("the release itself: %v\n%s", err, output)
	}
	if output, err := built.Push(t.Context(), copied); err != nil {
		t.Fatalf("the release itself: %v\n%s", err, output)
	}
	archive := "stencilctl-" + version + "-linux-" + runtime.GOARCH + ".tar.gz"
	flip(t, filepath.Join(copied, archive))
	if output, err := check(); err == nil || !strings.Contains(output, archive+": FAILED") {
		t.Errorf("sha256sum says %v\n%s", err, output)
	}
	flip(t, largest(t, filepath.Join(copied, "oci", "stencil-manager")))
	if output, err := built.Push(t.Context(), copied); err == nil || !strings.Contains(output, "reading the layout of stencil-manager: blob ") {
		t.Errorf("it was pushed: %v\n%s", err, output)
	}
}

// flip changes one bit in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// largest returns the path of the largest file below a folder.
func largest(t *testing.T, folder string) (path string) {
	t.Helper()
	var size int64
	err := filepath.WalkDir(folder, func(each string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		info, err := file.Info()
		if err == nil && info.Size() > size {
			path, size = each, info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}
