package rawzstd_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/rawzstd"
)

// frame returns one frame.
func frame(t *testing.T, data []byte, options ...zstd.EOption) []byte {
	t.Helper()
	made, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	return made.EncodeAll(data, nil)
}

// streamed returns one frame without the length of its content, as a writer makes it that does not know it.
func streamed(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	made, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
		if _, err := made.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := made.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// skippable is a frame that decoders skip.
var skippable = []byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'n', 'o', 't', 'e'}

func TestFramesOfAllKindsAreOneDisk(t *testing.T) {
	part := content(900_000)
	one, other := part[:300_000], part[300_000:]
	large := content(5 * mib)
	zeros := make([]byte, mib)
	for name, tc := range map[string]struct{ frames, data [][]byte }{
		"frames with and without checksums": {
			[][]byte{frame(t, one), frame(t, other, zstd.WithEncoderCRC(false)), frame(t, one)},
			[][]byte{one, other, one},
		},
		"a frame whose window is larger than its content": {
			[][]byte{frame(t, one, zstd.WithSingleSegment(false), zstd.WithWindowSize(8<<20)), frame(t, other)},
			[][]byte{one, other},
		},
		"a frame of an unknown length after one of a known length, and before another": {
			[][]byte{frame(t, other), streamed(t, one), frame(t, other)},
			[][]byte{other, one, other},
		},
		"a large frame between small ones": {
			[][]byte{frame(t, one), frame(t, large), frame(t, other)},
			[][]byte{one, large, other},
		},
		"skippable frames": {
			[][]byte{skippable, frame(t, one), skippable, frame(t, other), skippable},
			[][]byte{one, other},
		},
		"empty frames": {
			[][]byte{frame(t, nil, zstd.WithZeroFrames(true)), frame(t, one), frame(t, nil, zstd.WithZeroFrames(true))},
			[][]byte{one},
		},
		"zeros of a compressor": {
			[][]byte{frame(t, zeros), frame(t, one), frame(t, zeros)},
			[][]byte{zeros, one, zeros},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := bytes.Join(tc.data, nil)
			to := file(t, nil)
			if err := rawzstd.WriteRaw(t.Context(), to, bytes.NewReader(bytes.Join(tc.frames, nil)), int64(len(want)), nil); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(to.Name())
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("another disk of %d bytes instead of %d, %v", len(got), len(want), err)
			}
		})
	}
}

func TestFramesThatLie(t *testing.T) {
	one := content(300_000)
	small := frame(t, one[:1000], zstd.WithEncoderCRC(false))
	// A header of one segment with a length of 4 bytes.
	declare := func(length uint32, blocks ...byte) []byte {
		return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0b10_1_00000, byte(length), byte(length >> 8), byte(length >> 16), byte(length >> 24)}, blocks...)
	}
	// repeat is a block of 128 KiB of one byte.
	repeat := func(last bool) []byte {
		header := 128<<10<<3 | 1<<1
		if last {
			header |= 1
		}
		return []byte{byte(header), byte(header >> 8), byte(header >> 16), 'x'}
	}
	checksum := frame(t, one[:20_000])
	checksum[len(checksum)-1] ^= 1
	// 40 MiB of blocks in a frame that declares 1 MiB.
	bomb := declare(mib, bytes.Repeat(repeat(false), 320)...)
	bomb = append(bomb, repeat(true)...)
	for name, tc := range map[string]struct {
		stream []byte
		want   string
	}{
		"more than declared":                             {bomb, "zstd: decompressed size exceeds configured limit"},
		"less than declared":                             {declare(mib, repeat(true)...), "zstd: frame size does not match size on stream"},
		"a reserved kind of block":                       {declare(1000, 0b111, 0, 0), "zstd: invalid input: reserved block type encountered"},
		"a block larger than the limit of frames":        {declare(1000, 0xf9, 0xff, 0xff), "zstd: window size exceeded"},
		"another checksum":                               {checksum, "zstd: CRC check failed"},
		"truncated in a header":                          {small[:5], "zstd: unexpected EOF"},
		"truncated in a block":                           {small[:len(small)-1], "zstd: unexpected EOF"},
		"truncated in the header of the second frame":    {append(bytes.Clone(small), small[:3]...), "zstd: unexpected EOF"},
		"a frame without blocks":                         {append(bytes.Clone(small), declare(mib)...), "zstd: unexpected EOF"},
		"a second frame that makes the disk longer":      {append(bytes.Clone(small), frame(t, make([]byte, mib))...), "zstd: the disk has more than its 1048576 bytes"},
		"a dictionary, which no artifact has":            {append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0b00_1_000_01, 7, 5}, 0x29, 0, 0, 'h', 'e', 'l', 'l', 'o'), "zstd: unknown dictionary"},
		"nothing but frames that are skipped":            {skippable, "zstd: the disk ends at byte 0 of 1048576"},
		"frames without content, and nothing after them": {bytes.Repeat(declare(0, 1, 0, 0), 1000), "zstd: the disk ends at byte 0 of 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			err := expand(t.Context(), tc.stream, mib)
			var malformed *rawzstd.StreamError
			if !errors.As(err, &malformed) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestZerosAreExpandedWithoutWriting(t *testing.T) {
	const size = 100 << 30
	path := filepath.Join(t.TempDir(), "disk.raw")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	stream, writer := io.Pipe()
	go func() {
		made, err := rawzstd.NewEncoder(must(disk.OpenRaw(in, size)), disk.Options{})
		if err == nil {
			_, err = made.Write(t.Context(), writer)
		}
		writer.CloseWithError(err)
	}()
	var done int64
	if err := rawzstd.Expand(t.Context(), unwritable{t}, stream, size, func(n int64) { done = n }); err != nil || done != size {
		t.Errorf("%d bytes are done, %v", done, err)
	}
}

// unwritable fails the test when it is written.
type unwritable struct{ *testing.T }

func (u unwritable) WriteAt(p []byte, offset int64) (int, error) {
	u.Errorf("%d bytes are written at byte %d", len(p), offset)
	return len(p), nil
}
