package ova_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmstencil/stencil/ovf/ova"
)

// holes is the content of holes.raw in testdata/sparse, as README there says.
func holes() []byte {
	b := make([]byte, 1<<20)
	copy(b, "begin")
	copy(b[600_000:], "middle")
	for i := 1; i <= 28; i++ {
		b[20_000*i] = 'x'
	}
	return b
}

func sparseArchive(t *testing.T, path string) []byte {
	t.Helper()
	packed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	in, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestSparseMembersAreWholeFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/sparse/*.ova.gz")
	if err != nil || len(paths) != 4 {
		t.Fatal(paths, err)
	}
	want := map[string]string{"holes.raw": string(holes()), "empty.raw": string(make([]byte, 512<<10))}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			raw := sparseArchive(t, path)
			// The digests of the manifest are compared by both readers.
			files, _, err := readStream(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			p, err := openAndVerify(raw)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range p.Envelope().Files {
				if files[f.Href] != want[f.Href] {
					t.Errorf("%s differs in the stream", f.Href)
				}
				content, err := io.ReadAll(p.Raw(&p.Envelope().Files[i]))
				if err != nil || string(content) != want[f.Href] {
					t.Errorf("%s differs: %v", f.Href, err)
				}
				if limit := p.Envelope().Disks[i].Capacity; int64(len(content)) != limit {
					t.Errorf("%s has %d bytes, not %d", f.Href, len(content), limit)
				}
			}
			in := p.Raw(&p.Envelope().Files[0])
			for _, at := range []int64{599_990, 10, 1<<20 - 100, 0} {
				b := make([]byte, 100)
				if n, err := in.ReadAt(b, at); n != len(b) || err != nil || string(b) != want["holes.raw"][at:at+100] {
					t.Errorf("at %d: %d bytes %q, error %v", at, n, b, err)
				}
			}
			if n, err := in.ReadAt(make([]byte, 100), 1<<20-10); n != 10 || !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %d bytes, error %v", n, err)
			}
		})
	}
}

func TestDamagedSparseMembersAreRejected(t *testing.T) {
	whole := sparseArchive(t, "testdata/sparse/gnu.ova.gz")
	last := bytes.LastIndex(whole, []byte("middle"))
	cut := whole[:last/512*512]
	_, _, err := readStream(bytes.NewReader(cut))
	checkError(t, "the stream", `OVA, member "holes.raw": is truncated; transfer it again`, err)
	_, err = openAndVerify(cut)
	checkError(t, "random access", `OVA, member "holes.raw": is truncated; transfer it again`, err)

	changed := bytes.Clone(whole)
	changed[last] = 'M'
	_, _, err = readStream(bytes.NewReader(changed))
	if !errors.Is(err, ova.ErrDigest) {
		t.Errorf("changed data, in the stream: %v", err)
	}
	if _, err = openAndVerify(changed); !errors.Is(err, ova.ErrDigest) {
		t.Errorf("changed data, with random access: %v", err)
	}

	// The size with holes as a binary number, and the checksum of the header.
	large := bytes.Clone(whole)
	at := bytes.Index(large, []byte("empty.raw\x00"))
	if at < 0 {
		t.Fatal("there is no header")
	}
	header := large[at:][:512]
	copy(header[483:], []byte{0x80, 0, 0, 0})
	binary.BigEndian.PutUint64(header[487:], ova.MaxSparseBytes+1)
	copy(header[148:], "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	message := `OVA, member "empty.raw": is a sparse file of 2199023255553 bytes, and may have 2199023255552; pack it again without tar's option --sparse`
	_, _, err = readStream(bytes.NewReader(large))
	checkError(t, "too large, in the stream", message, err)
	_, err = openAndVerify(large)
	checkError(t, "too large, with random access", message, err)
}
