package vmdk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/internal/disktest"
)

func rawImage(t testing.TB, path string) disk.Image { return disktest.Image(t, disk.OpenRaw, path) }

// encoded writes a disk and returns the file.
func encoded(t testing.TB, source disk.Image, options EncodeOptions) string {
	t.Helper()
	encoder, err := NewEncoder(source, options)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "disk.vmdk")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := encoder.Write(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	return path
}

// With the build tag qemu, qemu-img reads it as well.
func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, encoding := range []Encoding{Fast, Best, Uncompressed, Stored} {
		t.Run(string(encoding), func(t *testing.T) {
			raw := disktest.Sample(t)
			path := encoded(t, rawImage(t, raw), EncodeOptions{Encoding: encoding})
			disktest.CompareQEMU(t, path, "vmdk", raw)
			disktest.CheckImage(t, Open, path, raw)
		})
	}
}

func TestWhatQEMUWritesIsRead(t *testing.T) {
	for name, options := range map[string][]string{
		"streamOptimized":           {"-o", "subformat=streamOptimized"},
		"monolithicSparse":          {"-o", "subformat=monolithicSparse"},
		"monolithicSparse, zeroed":  {"-o", "subformat=monolithicSparse,zeroed_grain=on"},
		"monolithicSparse, version": {"-o", "subformat=monolithicSparse,hwversion=21,adapter_type=lsilogic"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := disktest.Sample(t)
			if name == "streamOptimized" {
				raw = disktest.SmallSample(t)
			}
			disktest.CheckImage(t, Open, disktest.Convert(t, raw, "vmdk", options...), raw)
		})
	}
}

func TestADiskWithoutDataAndAnEmptyDisk(t *testing.T) {
	for _, size := range []int64{0, 512, 64 * disktest.MiB} {
		raw := disktest.Raw(t, size)
		path := encoded(t, rawImage(t, raw), EncodeOptions{})
		image := disktest.Image(t, Open, path)
		if got := image.Info().Size; got != size {
			t.Errorf("the size is %d instead of %d", got, size)
		}
		disktest.Compare(t, disktest.Extract(t, image), raw)
		if size > 0 {
			disktest.CompareQEMU(t, path, "vmdk", raw)
		}
	}
}

func TestADiskThatDoesNotEndWithASectorIsExtended(t *testing.T) {
	source, err := disk.OpenRaw(strings.NewReader(strings.Repeat("x", 1000)), 1000)
	if err != nil {
		t.Fatal(err)
	}
	image := disktest.Image(t, Open, encoded(t, source, EncodeOptions{}))
	got := make([]byte, 1024)
	if err := disk.ReadFull(image, got, 0); err != nil {
		t.Fatal(err)
	}
	if string(got) != strings.Repeat("x", 1000)+strings.Repeat("\x00", 24) {
		t.Error("other data")
	}
}

func TestBytesDoNotDependOnWorkers(t *testing.T) {
	// A new digest of the same disk is a new EncoderVersion.
	digests := map[Encoding]string{
		Fast:         "90db1d052c167079b8f550ac1f7d73649b36fd6e669ec4bfc578f20c78545291",
		Best:         "da290661b9c7d51436f751e0cf1688c1b5af5dc035123091357ef02eb6ff7a5d",
		Uncompressed: "fed4733571a1d37753cad23b75996caae0c2bed9d1b307d9f9b6d6ab0aebeb22",
		Stored:       "443dc75947632293e182ab7fd853de1c1e2f256b4b3c924ca22ce3568758b29d",
	}
	raw := disktest.Sample(t)
	source := disktest.Declared{Image: rawImage(t, raw), Ranges: disktest.SampleRanges}
	for encoding, want := range digests {
		for _, workers := range []int{1, 3, 16} {
			content, err := os.ReadFile(encoded(t, source, EncodeOptions{Encoding: encoding, Options: disk.Options{Workers: workers}}))
			if err != nil {
				t.Fatal(err)
			}
			digest := sha256.Sum256(content)
			if got := hex.EncodeToString(digest[:]); got != want {
				t.Errorf("%s with %d workers: the digest is %s instead of %s", encoding, workers, got, want)
			}
		}
	}
}

func TestTheSizeIsKnownBeforeWriting(t *testing.T) {
	raw := disktest.Sample(t)
	for _, encoding := range []Encoding{Fast, Best, Uncompressed, Stored} {
		source := &unread{Image: rawImage(t, raw), t: t, fail: encoding == Stored}
		encoder, err := NewEncoder(source, EncodeOptions{Encoding: encoding})
		if err != nil {
			t.Fatal(err)
		}
		layout, err := encoder.Layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		source.fail = false
		var b bytes.Buffer
		written, err := encoder.Write(t.Context(), &b)
		if err != nil {
			t.Fatal(err)
		}
		if layout.Size() != int64(b.Len()) || written.Size() != layout.Size() {
			t.Errorf("%s: the size is %d before writing, %d after it, and %d bytes are written", encoding, layout.Size(), written.Size(), b.Len())
		}
	}
}

// unread is an image that may not be read.
type unread struct {
	disk.Image
	t    *testing.T
	fail bool
}

func (u *unread) ReadAt(p []byte, offset int64) (int, error) {
	if u.fail {
		u.t.Errorf("%d bytes are read at byte %d", len(p), offset)
	}
	return u.Image.ReadAt(p, offset)
}

func TestARangeIsThePartOfTheStream(t *testing.T) {
	raw := disktest.Sample(t)
	for _, encoding := range []Encoding{Fast, Best, Uncompressed, Stored} {
		encoder, err := NewEncoder(rawImage(t, raw), EncodeOptions{Encoding: encoding})
		if err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		layout, err := encoder.Write(t.Context(), &whole)
		if err != nil {
			t.Fatal(err)
		}
		size := layout.Size()
		var starts []int64
		for i, start := range append([]uint32{1}, append(layout.starts, layout.tables...)...) {
			starts = append(starts, int64(start)*sector+int64(i%3*7))
		}
		starts = append(starts, 0, layout.end*sector, size-3*sector, size-1, size)
		for i, start := range starts {
			for _, length := range [][]int64{{0, 1000}, {1, 3 * disktest.MiB}, {size}}[i%3] {
				length = min(length, size-start)
				var part bytes.Buffer
				if err := encoder.WriteRange(t.Context(), &part, layout, start, length); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(part.Bytes(), whole.Bytes()[start:start+length]) {
					t.Fatalf("%s: %d bytes at byte %d differ", encoding, length, start)
				}
			}
		}
		if err := encoder.WriteRange(t.Context(), &bytes.Buffer{}, layout, size, 1); err == nil {
			t.Error("a range after the end is written")
		}
	}
}

func TestARangeOfADiskThatHasChangedIsAnError(t *testing.T) {
	raw := disktest.Sample(t)
	source := rawImage(t, raw)
	encoder, err := NewEncoder(source, EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	layout, err := encoder.Layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(raw, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(bytes.Repeat([]byte("noise?"), 100), 50*disktest.MiB); err != nil {
		t.Fatal(err)
	}
	err = encoder.WriteRange(t.Context(), &bytes.Buffer{}, layout, 40*disktest.KiB, layout.Size()-40*disktest.KiB)
	if err != ErrChanged { //nolint:errorlint // It is not wrapped.
		t.Errorf("the error is %v", err)
	}
}

func TestAStreamIsReadInOnePass(t *testing.T) {
	raw := disktest.Sample(t)
	for _, encoding := range []Encoding{Fast, Best, Uncompressed, Stored} {
		content, err := os.ReadFile(encoded(t, rawImage(t, raw), EncodeOptions{Encoding: encoding}))
		if err != nil {
			t.Fatal(err)
		}
		reader := bytes.NewReader(append(content, "more"...))
		stream, err := NewStream(struct{ io.Reader }{reader})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "streamed.raw")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := file.Truncate(stream.Size()); err != nil {
			t.Fatal(err)
		}
		if err := stream.Copy(t.Context(), file, disk.Options{}); err != nil {
			t.Fatal(err)
		}
		disktest.Compare(t, path, raw)
		if reader.Len() != len("more") {
			t.Errorf("%d bytes after the stream are left", reader.Len())
		}
	}
}

func TestBestIsSmaller(t *testing.T) {
	// Words of a text, in no order.
	words, text := strings.Fields("admission reconcile condition binding backing file template volume disk layer digest manifest envelope descriptor grain frame"), make([]byte, 4*disktest.MiB)
	for i, random := 0, uint32(1); i < len(text); random = random*1664525 + 1013904223 {
		i += copy(text[i:], words[random>>28]+" ")
	}
	source, err := disk.OpenRaw(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[Encoding]int{}
	for _, encoding := range []Encoding{Fast, Best, Uncompressed} {
		content, err := os.ReadFile(encoded(t, source, EncodeOptions{Encoding: encoding}))
		if err != nil {
			t.Fatal(err)
		}
		sizes[encoding] = len(content)
		// Streams are what imports read.
		stream, err := NewStream(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		got := make(written, len(text))
		if err := stream.Copy(t.Context(), got, disk.Options{}); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: the disk has other bytes, or %v", encoding, err)
		}
	}
	if sizes[Best] > sizes[Fast]*95/100 || sizes[Fast] >= sizes[Uncompressed] || sizes[Uncompressed] > len(text)*103/100 {
		t.Errorf("sizes %v", sizes)
	}
	const wrong = `unknown encoding "strong": choose "fast", "best", "uncompressed" or "stored"`
	if _, err := NewEncoder(source, EncodeOptions{Encoding: "strong"}); err == nil || err.Error() != wrong {
		t.Errorf("error %v, want %s", err, wrong)
	}
}

// written is a disk in memory.
type written []byte

func (w written) WriteAt(p []byte, offset int64) (int, error) { return copy(w[offset:], p), nil }
