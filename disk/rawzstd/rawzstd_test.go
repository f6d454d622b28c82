package rawzstd_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/rawzstd"
)

const mib = 1 << 20

// content returns a disk that has random bytes, text, and zeros of less and more than a MiB.
func content(size int) []byte {
	raw := make([]byte, size)
	source := rand.NewChaCha8([32]byte{1})
	for _, at := range []int{0, 5 * mib / 2, size - 700} {
		if at >= 0 && at < size {
			_, _ = source.Read(raw[at:min(at+600_000, size)])
		}
	}
	for at := 7 * mib; at+9 < min(size, 8*mib); at += 9 {
		copy(raw[at:], "some text")
	}
	return raw
}

// file returns a file with holes that has a content.
func file(t *testing.T, raw []byte) *os.File {
	t.Helper()
	made, err := os.Create(filepath.Join(t.TempDir(), "disk.raw"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	if err := errors.Join(made.Truncate(int64(len(raw))), disk.WriteNonzero(made, raw, 0)); err != nil {
		t.Fatal(err)
	}
	return made
}

func encoder(t *testing.T, r io.ReaderAt, size int, workers int) *rawzstd.Encoder {
	t.Helper()
	image, err := disk.OpenRaw(r, int64(size))
	if err != nil {
		t.Fatal(err)
	}
	made, err := rawzstd.NewEncoder(image, disk.Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// encodings are all encodings.
var encodings = []rawzstd.Encoding{rawzstd.Fast, rawzstd.Best, rawzstd.Uncompressed}

// encoderOf returns an encoder with an encoding.
func encoderOf(t *testing.T, encoding rawzstd.Encoding, r io.ReaderAt, size int, workers int) *rawzstd.Encoder {
	t.Helper()
	image, err := disk.OpenRaw(r, int64(size))
	if err != nil {
		t.Fatal(err)
	}
	compressor, err := rawzstd.NewCompressor(encoding, workers)
	if err != nil {
		t.Fatal(err)
	}
	made, err := compressor.Encoder(image, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestStreamsDependOnTheDiskAndTheEncodingOnly(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(string(encoding), func(t *testing.T) { streamsDependOnTheDisk(t, encoding) })
	}
}

func streamsDependOnTheDisk(t *testing.T, encoding rawzstd.Encoding) {
	t.Helper()
	sizes := []int{1, 511, mib - 1, mib, mib + 1, 20*mib + 4711, 20 * mib}
	if encoding != rawzstd.Fast {
		sizes = []int{1, 3*mib + 4711}
	}
	for _, size := range sizes {
		raw := content(size)
		var first bytes.Buffer
		layout, err := encoderOf(t, encoding, bytes.NewReader(raw), size, 1).Write(t.Context(), &first)
		if err != nil {
			t.Fatal(err)
		}
		if layout.Size != int64(first.Len()) || layout.Digest != sha256.Sum256(first.Bytes()) {
			t.Errorf("%d: the layout has %d bytes with digest %x, the stream %d with %x", size, layout.Size, layout.Digest, first.Len(), sha256.Sum256(first.Bytes()))
		}
		for _, workers := range []int{2, 7} {
			var other bytes.Buffer
			if _, err := encoderOf(t, encoding, file(t, raw), size, workers).Write(t.Context(), &other); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), other.Bytes()) {
				t.Errorf("%d: the stream of a file with holes, by %d workers, is another one", size, workers)
			}
		}
		// As one stream.
		compressed := bytes.Clone(first.Bytes())
		reader, err := zstd.NewReader(&first)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(reader)
		reader.Close()
		if err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%d: klauspost's decoder reads another disk, or %v", size, err)
		}
		target := file(t, make([]byte, size))
		if err := rawzstd.Expand(t.Context(), target, bytes.NewReader(compressed), int64(size), nil); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(target.Name()); err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%d: another disk is expanded, or %v", size, err)
		}
	}
}

func TestStreamsContinueFromAnyByte(t *testing.T) {
	for encoding, tc := range map[rawzstd.Encoding]struct {
		size int
		step int64
	}{rawzstd.Fast: {12*mib + 99, 31_337}, rawzstd.Best: {3*mib + 99, 131_337}, rawzstd.Uncompressed: {3*mib + 99, 131_337}} {
		t.Run(string(encoding), func(t *testing.T) { continuesFromAnyByte(t, encoding, content(tc.size), tc.step) })
	}
}

func continuesFromAnyByte(t *testing.T, encoding rawzstd.Encoding, raw []byte, step int64) {
	t.Helper()
	source := encoderOf(t, encoding, file(t, raw), len(raw), 3)
	var whole bytes.Buffer
	layout, err := source.Write(t.Context(), &whole)
	if err != nil {
		t.Fatal(err)
	}
	offsets := []int64{0, 1, layout.Size - 1, layout.Size}
	for at := int64(0); at < layout.Size; at += step {
		offsets = append(offsets, at)
	}
	for _, offset := range offsets {
		var rest bytes.Buffer
		if err := source.WriteFrom(t.Context(), &rest, layout, offset); err != nil || !bytes.Equal(rest.Bytes(), whole.Bytes()[offset:]) {
			t.Fatalf("from byte %d: %d bytes, want %d, or %v", offset, rest.Len(), layout.Size-offset, err)
		}
	}
	if err := source.WriteFrom(t.Context(), io.Discard, layout, layout.Size+1); err == nil {
		t.Error("a byte behind the end is no error")
	}
	changed := bytes.Clone(raw)
	copy(changed[3*mib/2:], "written meanwhile")
	if err := encoderOf(t, encoding, file(t, changed), len(raw), 3).WriteFrom(t.Context(), io.Discard, layout, 0); !errors.Is(err, rawzstd.ErrChanged) {
		t.Errorf("error %v for a disk that has changed", err)
	}
}

func TestHolesAreNeitherReadNorWritten(t *testing.T) {
	const size = 100 << 30
	made, err := os.Create(filepath.Join(t.TempDir(), "disk.raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = made.Close() }()
	if err := made.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err := made.WriteAt([]byte("in the middle"), size/2); err != nil {
		t.Fatal(err)
	}
	image, err := disk.OpenRaw(made, size)
	if err != nil {
		t.Fatal(err)
	}
	var read int64
	source, err := rawzstd.NewEncoder(image, disk.Options{Progress: func(done int64) { read = done }})
	if err != nil {
		t.Fatal(err)
	}
	layout, err := source.Layout(t.Context())
	if err != nil || read > mib || layout.Size > 41*(100<<10)+mib {
		t.Errorf("%d bytes were read, %+v, %v", read, layout.Size, err)
	}
}

func TestExpandWritesTheDisk(t *testing.T) {
	raw := content(12*mib + 99)
	var own, other bytes.Buffer
	if _, err := encoder(t, bytes.NewReader(raw), len(raw), 0).Write(t.Context(), &own); err != nil {
		t.Fatal(err)
	}
	// What KubeVirt writes is one frame.
	writer, err := zstd.NewWriter(&other, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	for what, stream := range map[string][]byte{"own": own.Bytes(), "KubeVirt's": other.Bytes()} {
		to := file(t, []byte("what the file had before"))
		var done int64
		if err := rawzstd.WriteRaw(t.Context(), to, bytes.NewReader(stream), int64(len(raw)), func(n int64) { done = n }); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to.Name()); err != nil || !bytes.Equal(got, raw) || done != int64(len(raw)) {
			t.Errorf("%s: another disk, %d bytes done, %v", what, done, err)
		}
		// A truncated stream fails wherever it ends, and one with another size than declared.
		for at := 0; at < len(stream); at += len(stream)/97 + 1 {
			if err := expand(t.Context(), stream[:at], len(raw)); err == nil {
				t.Errorf("%s: truncated at byte %d is no error", what, at)
			}
		}
		for difference, want := range map[int]string{-1: "has more than its", 1: "ends at byte", -len(raw): "has more than its 0 bytes"} {
			if err := expand(t.Context(), stream, len(raw)+difference); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v for a size that differs by %d", what, err, difference)
			}
		}
	}
}

type discard struct{}

func (discard) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func expand(ctx context.Context, stream []byte, size int) error {
	return rawzstd.Expand(ctx, discard{}, bytes.NewReader(stream), int64(size), nil)
}

func TestWhatIsWrongWithStreams(t *testing.T) {
	var valid bytes.Buffer
	raw := content(3 * mib)
	if _, err := encoder(t, bytes.NewReader(raw), len(raw), 0).Write(t.Context(), &valid); err != nil {
		t.Fatal(err)
	}
	wide, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	var large bytes.Buffer
	wide.Reset(&large)
	if _, err := wide.Write(make([]byte, 65<<20)); err != nil {
		t.Fatal(err)
	}
	if err := wide.Close(); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(valid.Bytes())
	flipped[len(flipped)-2] ^= 1
	for what, tc := range map[string]struct {
		stream []byte
		size   int
		want   string
	}{
		"something else":  {[]byte("no zstd at all, but text"), 24, "zstd: invalid input: magic number mismatch"},
		"trailing bytes":  {append(bytes.Clone(valid.Bytes()), "more"...), len(raw), "zstd: "},
		"a changed bit":   {flipped, len(raw), "zstd: "},
		"a large window":  {large.Bytes(), 65 << 20, "zstd: window size exceeded"},
		"a bomb of zeros": {large.Bytes()[:0:0], mib, "zstd: the disk ends at byte 0 of 1048576"},
	} {
		err := expand(t.Context(), tc.stream, tc.size)
		var malformed *rawzstd.StreamError
		if !errors.As(err, &malformed) || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", what, err, tc.want)
		}
	}
	// Not an error of the stream: it is that of the reader.
	broken := errors.New("connection lost")
	err = rawzstd.Expand(t.Context(), discard{}, io.MultiReader(bytes.NewReader(valid.Bytes()[:mib/2]), failing{broken}), int64(len(raw)), nil)
	if !errors.Is(err, broken) {
		t.Errorf("error %v of a reader that fails", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := expand(ctx, valid.Bytes(), len(raw)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after the end of the context", err)
	}
	if _, err := rawzstd.NewEncoder(must(disk.OpenRaw(bytes.NewReader(nil), 0)), disk.Options{}); err == nil {
		t.Error("an empty disk is no error")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func must(image disk.Image, err error) disk.Image {
	if err != nil {
		panic(err)
	}
	return image
}

func FuzzExpand(f *testing.F) {
	raw := content(mib + 10)
	made, err := rawzstd.NewEncoder(must(disk.OpenRaw(bytes.NewReader(raw), int64(len(raw)))), disk.Options{})
	if err != nil {
		f.Fatal(err)
	}
	var valid bytes.Buffer
	if _, err := made.Write(context.Background(), &valid); err != nil {
		f.Fatal(err)
	}
	f.Add(valid.Bytes(), int64(len(raw)))
	f.Add([]byte{}, int64(1))
	f.Fuzz(func(t *testing.T, stream []byte, size int64) {
		size &= 8<<20 - 1
		written := &extent{}
		err := rawzstd.Expand(t.Context(), written, bytes.NewReader(stream), size, nil)
		if written.end > size {
			t.Errorf("%d bytes of a disk of %d were written", written.end, size)
		}
		var malformed *rawzstd.StreamError
		if err != nil && !errors.As(err, &malformed) {
			t.Errorf("error %v", err)
		}
	})
}

// extent records how far a disk is written.
type extent struct{ end int64 }

func (e *extent) WriteAt(p []byte, offset int64) (int, error) {
	e.end = max(e.end, offset+int64(len(p)))
	return len(p), nil
}

// TestBytesOfEncodings tests the size of a disk that can be compressed, and that the bytes of exports remain the same.
func TestBytesOfEncodings(t *testing.T) {
	text := make([]byte, 4*mib)
	for i, word := 0, uint32(1); i+8 <= len(text); i, word = i+8, word*1664525+1013904223 {
		copy(text[i:], fmt.Sprintf("%07d ", word>>13))
	}
	sizes := map[rawzstd.Encoding]int64{}
	for encoding, want := range map[rawzstd.Encoding]string{
		rawzstd.Fast:         "ea5cb4afbdf057bf98ca26956df3db52df10d686fa1681ce653d4a787c74519f",
		rawzstd.Best:         "df8451630cb132c39fe8ae39b32d4d892e8658c7f8dbe77d6b577af062aef3df",
		rawzstd.Uncompressed: "fdf8cf96efa7c72f7e856a1c1270e6adebd0be7ba9ebd1c4533998749ea11caf",
	} {
		layout, err := encoderOf(t, encoding, bytes.NewReader(text), len(text), 0).Layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(layout.Digest[:]); got != want {
			t.Errorf("%s: the digest is %s instead of %s", encoding, got, want)
		}
		sizes[encoding] = layout.Size
	}
	// 8 blocks for each MiB, and its header.
	if sizes[rawzstd.Best] > sizes[rawzstd.Fast]*95/100 || sizes[rawzstd.Fast] >= sizes[rawzstd.Uncompressed] || sizes[rawzstd.Uncompressed] != int64(len(text))+4*(9+8*3) {
		t.Errorf("sizes %v", sizes)
	}
	const wrong = `unknown encoding "strong": choose "fast", "best" or "uncompressed"`
	if _, err := rawzstd.NewCompressor("strong", 0); err == nil || err.Error() != wrong {
		t.Errorf("error %v, want %s", err, wrong)
	}
}
