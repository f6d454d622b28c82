package ova

import (
	"archive/tar"
	"bytes"
	"testing"
	"time"
)

// TestSizesOfHeaders compares the announced sizes of members with those of their headers, without writing gigabytes.
func TestSizesOfHeaders(t *testing.T) {
	for _, size := range []int64{0, 1, 512, 8<<30 - 1, 8 << 30, 9 << 40} {
		var b bytes.Buffer
		if err := tar.NewWriter(&b).WriteHeader(header("disk.vmdk", size, time.Unix(1, 5))); err != nil {
			t.Fatal(err)
		}
		if want := int64(b.Len()) + padded(size); memberSize(size) != want {
			t.Errorf("a member of %d bytes occupies %d, want %d", size, memberSize(size), want)
		}
	}
}
