package ova

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestSizesOfHeaders compares the announced sizes of headers with theirs, without writing gigabytes. They depend on the name only.
func TestSizesOfHeaders(t *testing.T) {
	for _, length := range []int{1, 100, 101, 255} {
		for _, size := range []int64{0, 1, 512, 8<<30 - 1, 8 << 30, 9 << 40} {
			var b bytes.Buffer
			name := strings.Repeat("n", length)
			if err := tar.NewWriter(&b).WriteHeader(header(name, size, time.Unix(1, 5))); err != nil {
				t.Fatal(err)
			}
			if got := headerSize(name); got != int64(b.Len()) {
				t.Errorf("a header of %d bytes is announced for a name of %d and a size of %d, want %d", got, length, size, b.Len())
			}
		}
	}
}
