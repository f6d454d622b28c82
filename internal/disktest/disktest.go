// Package disktest makes disks for tests, and compares them. Only tests import it.
//
// Images of qemu-img are recordings in the folder testdata of the tested package, so that tests run without qemu-img. With the build tag qemu, the
// qemu-img of the host makes the images again, and also reads what Stencil writes.
package disktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

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

// fill fills p with data. Of eight blocks about one is zero and noise-1 do not compress. The same seed makes the same data.
func fill(p []byte, seed uint64, noise int) {
	random := rand.New(rand.NewPCG(seed, 1))
	words := []string{"kubevirt ", "template ", "golden ", "image ", "\x00\x00\x00\x00\x00\x00\x00\x00", "fedora ", "volume ", "\x7fELF\x02\x01\x01"}
	for start := 0; start < len(p); start += 4096 {
		block := p[start:min(start+4096, len(p))]
		switch kind := random.IntN(8); {
		case kind == 0:
			clear(block)
		case kind < noise:
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
	return raw(t, size, 4, ranges)
}

func raw(t testing.TB, size int64, noise int, ranges []Range) string {
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
			fill(data, uint64(i)<<32|uint64(start/MiB), noise)
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

// SmallSample is Sample, or a disk of the same size with less data if images are recorded: that of compressed images cannot be shared.
func SmallSample(t testing.TB) string {
	t.Helper()
	if Live {
		return Sample(t)
	}
	return raw(t, SampleSize, 2, []Range{
		{Offset: 0, Length: 128 * KiB},
		{Offset: 32*MiB - 32*KiB, Length: 64*KiB + 4096},
		{Offset: 100*MiB + 70*KiB, Length: 512},
		{Offset: SampleSize - 40*KiB, Length: 40 * KiB},
	})
}

// qemu runs qemu-img in a folder and returns what it prints.
func qemu(t testing.TB, folder string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "qemu-img", arguments...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("qemu-img %q (Debian: apt-get install --no-install-recommends qemu-utils): %v\n%s", arguments, err, output)
	}
	return string(output)
}

// CompareQEMU fails if Live is set and qemu-img finds a difference between an image and a raw one.
func CompareQEMU(t testing.TB, path, format, raw string) {
	t.Helper()
	if Live {
		qemu(t, ".", "compare", "-f", format, "-F", "raw", path, raw)
	}
}

// Compare fails if raw images have different data. The longer one ends with zeros.
func Compare(t testing.TB, a, b string) {
	t.Helper()
	for _, files := range [][2]string{{a, b}, {b, a}} {
		other, _ := Open(t, files[1])
		for offset, block := range blocks(t, files[0]) {
			got := make([]byte, len(block))
			if _, err := other.ReadAt(got, offset); err != nil && err != io.EOF { //nolint:errorlint // io.ReaderAt returns io.EOF itself.
				t.Fatal(err)
			}
			if !bytes.Equal(got, block) {
				t.Fatalf("%s and %s differ in the block at byte %d", a, b, offset)
			}
		}
	}
}

// blocks yields the blocks of a file that are not zero, without the zeros after the last one. It finds holes without the code under test.
func blocks(t testing.TB, path string) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		file, _ := Open(t, path)
		for offset := int64(0); ; {
			start, err := unix.Seek(int(file.Fd()), offset, unix.SEEK_DATA)
			if errors.Is(err, unix.ENXIO) {
				return
			}
			end, holeErr := unix.Seek(int(file.Fd()), start, unix.SEEK_HOLE)
			if err := errors.Join(err, holeErr); err != nil {
				t.Fatal(err)
			}
			for offset = start / disk.ZeroBlock * disk.ZeroBlock; offset < end; offset += disk.ZeroBlock {
				block := make([]byte, disk.ZeroBlock)
				if _, err := file.ReadAt(block, offset); err != nil && err != io.EOF { //nolint:errorlint // As above.
					t.Fatal(err)
				}
				if !disk.IsZero(block) && !yield(offset, block) {
					return
				}
			}
		}
	}
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

// CheckImage opens an image in a file and compares the disk with a raw image.
func CheckImage(t testing.TB, open Opener, path, raw string) {
	t.Helper()
	image := Image(t, open, path)
	CheckReads(t, image, raw)
	Compare(t, Extract(t, image), raw)
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
