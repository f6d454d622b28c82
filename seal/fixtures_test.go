package seal

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"
)

// image returns an image of testdata, whose make.sh made it.
func image(t testing.TB, name string) []byte {
	t.Helper()
	return testfile.Expand(t, filepath.Join("testdata", name+".zst"))
}

func inspectBytes(t testing.TB, raw []byte) Report {
	t.Helper()
	return Inspect(t.Context(), bytes.NewReader(raw), int64(len(raw)))
}
