// Package disktest makes disks for tests, and compares them by qemu-img.
package disktest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/vmstencil/stencil/disk"
)

// Range is data at an offset of a disk, in bytes.
type Range = disk.Range

// Declared is an image with ranges of its own instead of those that a file system reports.
type Declared struct {
	disk.Image
	Ranges []Range
}

// NextData implements disk.Image.
func (d Declared) NextData(offset int64) (Range, error) {
	for _, r := range d.Ranges {
		if r.End() > offset {
			start := max(r.Offset, offset)
			return Range{Offset: start, Length: r.End() - start}, nil
		}
	}
	return Range{}, io.EOF
}

const (
	// KiB is a number of bytes, as the others.
	KiB = int64(1) << 10
	// MiB is 1024 KiB.
	MiB = int64(1) << 20
	// GiB is 1024 MiB.
	GiB = int64(1) << 30
)

// Fill fills p with data of which about half compresses, and an eighth is zero. The same seed makes the same data.
func Fill(p []byte, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	words := []string{"kubevirt ", "template ", "golden ", "image ", "\x00\x00\x00\x00\x00\x00\x00\x00", "fedora ", "volume ", "\x7fELF\x02\x01\x01"}
	for start := 0; start < len(p); start += 4096 {
		block := p[start:min(start+4096, len(p))]
		switch kind := random.IntN(8); {
		case kind == 0:
			clear(block)
		case kind < 4:
			for i := 0; i+8 <= len(block); i += 8 {
				value := random.Uint64()
				for j := range 8 {
					block[i+j] = byte(value >> (8 * j))
				}
			}
		default:
			for n := 0; n < len(block); {
				n += copy(block[n:], words[random.IntN(len(words))])
			}
		}
	}
}

// Raw makes a raw image with data in some ranges, and returns its path.
func Raw(t testing.TB, size int64, ranges ...Range) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk.raw")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for i, r := range ranges {
		for start := r.Offset; start < r.End(); start += MiB {
			data := make([]byte, min(MiB, r.End()-start))
			Fill(data, uint64(i)<<32|uint64(start/MiB))
			if _, err := file.WriteAt(data, start); err != nil {
				t.Fatal(err)
			}
		}
	}
	return path
}

// SampleSize is the size of Sample. It is not a multiple of any format's unit.
const SampleSize = 200*MiB + 3*512

// SampleRanges are the data of Sample: at the start, across tables, a single sector, and at the end.
var SampleRanges = []Range{
	{Offset: 0, Length: 3 * MiB},
	{Offset: 31 * MiB, Length: 2*MiB + 4096},
	{Offset: 100*MiB + 70*KiB, Length: 512},
	{Offset: 199 * MiB, Length: SampleSize - 199*MiB},
}

// Sample makes a raw image and returns its path.
func Sample(t testing.TB) string {
	t.Helper()
	return Raw(t, SampleSize, SampleRanges...)
}

// Install is what a host needs for the tests of formats.
const Install = "the tests of disk formats need qemu-img (Debian: apt-get install --no-install-recommends qemu-utils)"

// QEMU runs qemu-img and returns what it prints.
func QEMU(t testing.TB, arguments ...string) string {
	t.Helper()
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Fatal(Install)
	}
	output, err := exec.CommandContext(t.Context(), "qemu-img", arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("qemu-img %q: %v\n%s", arguments, err, output)
	}
	return string(output)
}

// Convert makes an image by qemu-img of a raw one and returns its path. options are more arguments of qemu-img convert.
func Convert(t testing.TB, raw, format string, options ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk."+format)
	QEMU(t, append(append([]string{"convert", "-f", "raw", "-O", format}, options...), raw, path)...)
	return path
}

// Compare fails if qemu-img finds a difference.
func Compare(t testing.TB, a, formatOfA, b, formatOfB string) {
	t.Helper()
	QEMU(t, "compare", "-f", formatOfA, "-F", formatOfB, a, b)
}

// Open opens a file until the end of the test and returns it with its size.
func Open(t testing.TB, path string) (*os.File, int64) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return file, info.Size()
}

// Opener opens an image.
type Opener func(r io.ReaderAt, size int64) (disk.Image, error)

// Image opens the image in a file.
func Image(t testing.TB, open Opener, path string) disk.Image {
	t.Helper()
	file, size := Open(t, path)
	image, err := open(file, size)
	if err != nil {
		t.Fatalf("opening %s: %v", filepath.Base(path), err)
	}
	return image
}

// Extract writes an image to a raw file and returns its path.
func Extract(t testing.TB, image disk.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "extracted.raw")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := disk.WriteRaw(t.Context(), file, image, disk.Options{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// CheckQEMU opens an image in a file and compares the disk with a raw image, also by qemu-img.
func CheckQEMU(t testing.TB, open Opener, path, raw string) {
	t.Helper()
	image := Image(t, open, path)
	CheckReads(t, image, raw)
	Compare(t, Extract(t, image), "raw", raw, "raw")
}

// CheckReads compares reads of all kinds of offsets with a raw image.
func CheckReads(t testing.TB, image disk.Image, raw string) {
	t.Helper()
	file, size := Open(t, raw)
	if got := image.Info().Size; got != size {
		t.Fatalf("the size is %d instead of %d", got, size)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 150 {
		offset := random.Int64N(size)
		length := min(1+random.Int64N(300*KiB), size-offset)
		got, want := make([]byte, length), make([]byte, length)
		if err := disk.ReadFull(image, got, offset); err != nil {
			t.Fatal(err)
		}
		if err := disk.ReadFull(file, want, offset); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes at byte %d differ", length, offset)
		}
	}
	if n, err := image.ReadAt(make([]byte, 10), size-4); n != 4 || err != io.EOF { //nolint:errorlint // io.ReaderAt returns io.EOF itself.
		t.Fatalf("a read across the end returns %d, %v", n, err)
	}
	if n, err := image.ReadAt(make([]byte, 10), size); n != 0 || err != io.EOF { //nolint:errorlint // As above.
		t.Fatalf("a read after the end returns %d, %v", n, err)
	}
}

// Counter counts the bytes that are read.
type Counter struct {
	io.ReaderAt
	Bytes atomic.Int64
}

// ReadAt implements io.ReaderAt.
func (c *Counter) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, offset)
	c.Bytes.Add(int64(n))
	return n, err
}

// Walk reads all data of an image, as an importer would, and returns its number of bytes.
func Walk(ctx context.Context, image disk.Image, limit int64) (int64, error) {
	read := int64(0)
	buffer := make([]byte, MiB)
	for span, err := range disk.Spans(image, disk.ZeroBlock, MiB) {
		if err != nil {
			return read, err
		}
		if read += span.Length; read > limit {
			return read, fmt.Errorf("more than %d bytes of data", limit)
		}
		if err := disk.ReadFull(image, buffer[:span.Length], span.Offset); err != nil {
			return read, err
		}
		if err := ctx.Err(); err != nil {
			return read, err
		}
	}
	return read, nil
}
