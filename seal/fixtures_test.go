package seal

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// image returns an image of testdata, whose make.sh made it.
func image(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	raw, err := io.ReadAll(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func inspectBytes(t testing.TB, raw []byte) Report {
	t.Helper()
	return Inspect(t.Context(), bytes.NewReader(raw), int64(len(raw)))
}
