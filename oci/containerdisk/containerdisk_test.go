package containerdisk_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/oci/containerdisk"
)

func layer(t *testing.T, r io.ReaderAt, size int64) *containerdisk.Layer {
	t.Helper()
	image, err := disk.OpenRaw(r, size)
	if err != nil {
		t.Fatal(err)
	}
	made, err := containerdisk.NewLayer(disk.Raw, image)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestLayersAreWholeArchives(t *testing.T) {
	for _, size := range []int{1, 511, 512, 513, 100 << 10} {
		raw := bytes.Repeat([]byte("x"), size)
		made := layer(t, bytes.NewReader(raw), int64(size))
		var whole bytes.Buffer
		archive := tar.NewWriter(&whole)
		for _, header := range []*tar.Header{
			{Typeflag: tar.TypeDir, Name: "disk/", Mode: 0o755, Uid: 107, Gid: 107},
			{Typeflag: tar.TypeReg, Name: "disk/disk.raw", Mode: 0o644, Uid: 107, Gid: 107, Size: int64(size)},
		} {
			if err := archive.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := archive.Write(raw); err != nil {
			t.Fatal(err)
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		if err := iotest.TestReader(io.NewSectionReader(made, 0, made.Info().Size), whole.Bytes()); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		want := sha256.Sum256(whole.Bytes())
		if id, err := made.DiffID(t.Context(), func(int64) {}); err != nil || id.Hex != hex.EncodeToString(want[:]) {
			t.Errorf("%d bytes: digest %s, want %x, %v", size, id, want, err)
		}
	}
}

func TestHolesStayHoles(t *testing.T) {
	const size = 20 << 30
	content, err := disk.OpenRaw(zeros{}, size)
	if err != nil {
		t.Fatal(err)
	}
	made, err := containerdisk.NewLayer(disk.QCOW2, sparse{content, disk.Range{Offset: 12 << 30, Length: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	// More than 8 GiB are in an extended header.
	reader := tar.NewReader(io.NewSectionReader(made, 0, made.Info().Size))
	for range 2 {
		header, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg && (header.Size != size || header.Name != "disk/disk.qcow2") {
			t.Errorf("header %+v", header)
		}
	}
	var data int64
	for span, err := range disk.Spans(made, 512, 1<<20) {
		if err != nil {
			t.Fatal(err)
		}
		data += span.Length
	}
	if data < 1<<20 || data > 1<<20+8192 {
		t.Errorf("%d bytes of data", data)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := made.DiffID(ctx, func(int64) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after the end of the context", err)
	}
	if _, err := made.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative offset is no error")
	}
}

type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// sparse has one range of data.
type sparse struct {
	disk.Image
	data disk.Range
}

func (s sparse) NextData(offset int64) (disk.Range, error) {
	if offset >= s.data.End() {
		return disk.Range{}, io.EOF
	}
	start := max(offset, s.data.Offset)
	return disk.Range{Offset: start, Length: s.data.End() - start}, nil
}
