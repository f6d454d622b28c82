// Package testfile reads, writes and compares files in tests. Only tests import it.
package testfile

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// Read returns the content of a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Expand returns the content of a file that is compressed by zstd.
func Expand(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	expanded, err := zstd.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer expanded.Close()
	content, err := io.ReadAll(expanded)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Block returns the first block of code of a language after a text of a page in Markdown.
func Block(t testing.TB, path, after, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(string(Read(t, path)), after)
	_, rest, also := strings.Cut(rest, "```"+language+"\n")
	code, _, last := strings.Cut(rest, "```\n")
	if !found || !also || !last {
		t.Fatalf("%s has no block of %s after %q", path, language, after)
	}
	return code
}

// Write writes a file that all users may read, and creates its folder.
func Write[T string | []byte](t testing.TB, path string, content T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Generated is a file of the repository, or a part of one, that a test generates.
type Generated struct {
	Path string
	// Begin and End are the texts before and after the part. Empty for the whole file.
	Begin, End string
	// Update makes Compare write the file. Command is the command that does so, for the failure.
	Update  bool
	Command string
}

// Compare compares the file with the expected content, or writes it.
func (g Generated) Compare(t testing.TB, want string) {
	t.Helper()
	var head, got, tail string
	if g.Begin != "" {
		before, rest, found := strings.Cut(string(Read(t, g.Path)), g.Begin)
		part, after, foundEnd := strings.Cut(rest, g.End)
		if !found || !foundEnd {
			t.Fatalf("%s lacks %q and %q", g.Path, g.Begin, g.End)
		}
		head, got, tail = before+g.Begin, part, g.End+after
	}
	if g.Update {
		Write(t, g.Path, head+want+tail)
		return
	}
	if g.Begin == "" {
		got = string(Read(t, g.Path))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not current; run %s (-want +got):\n%s", g.Path, g.Command, diff)
	}
}
