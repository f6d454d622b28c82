package disk_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/internal/disktest"
	"github.com/vmstencil/stencil/internal/testfile"
)

func memory(t *testing.T, size int64) disk.Image {
	t.Helper()
	image, err := disk.OpenRaw(bytes.NewReader(make([]byte, size)), size)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestSpans(t *testing.T) {
	for name, tc := range map[string]struct {
		size        int64
		data        []disk.Range
		unit, limit int64
		want        []disk.Range
	}{
		"no data": {size: 100, unit: 10, limit: 20},
		"ranges in one unit are one": {
			size: 100, unit: 10, limit: 20,
			data: []disk.Range{{Offset: 1, Length: 2}, {Offset: 4, Length: 1}},
			want: []disk.Range{{Offset: 0, Length: 10}},
		},
		"a range across units has all of them": {
			size: 100, unit: 10, limit: 20,
			data: []disk.Range{{Offset: 19, Length: 2}},
			want: []disk.Range{{Offset: 10, Length: 10}, {Offset: 20, Length: 10}},
		},
		"a long range is split at multiples of the limit": {
			size: 100, unit: 10, limit: 20,
			data: []disk.Range{{Offset: 15, Length: 50}},
			want: []disk.Range{{Offset: 10, Length: 10}, {Offset: 20, Length: 20}, {Offset: 40, Length: 20}, {Offset: 60, Length: 10}},
		},
		"the last unit ends with the disk": {
			size: 95, unit: 10, limit: 20,
			data: []disk.Range{{Offset: 91, Length: 4}},
			want: []disk.Range{{Offset: 90, Length: 5}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []disk.Range
			for span, err := range disk.Spans(disktest.Declared{Image: memory(t, tc.size), Ranges: tc.data}, tc.unit, tc.limit) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, span)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("the spans are %v instead of %v", got, tc.want)
			}
		})
	}
}

func TestARawImageIsCopiedWithItsHoles(t *testing.T) {
	const size = 100*disktest.GiB + 5
	raw := disktest.Raw(t, size, disktest.Range{Offset: disktest.MiB, Length: 3 * disktest.MiB}, disktest.Range{Offset: size - 100, Length: 100})
	image := disktest.Image(t, disk.OpenRaw, raw)
	copied := disktest.Extract(t, image)
	disktest.Compare(t, raw, copied)
	if blocks := allocated(t, copied); blocks > 4*disktest.MiB {
		t.Errorf("%d bytes are allocated for 3 MiB of data", blocks)
	}
}

func allocated(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

func TestZerosBecomeHoles(t *testing.T) {
	data := make([]byte, 4*disktest.MiB+100)
	copy(data[disktest.MiB:], "data")
	data[len(data)-1] = 1
	image, err := disk.OpenRaw(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	path := disktest.Extract(t, image)
	if !bytes.Equal(testfile.Read(t, path), data) {
		t.Error("the copy differs")
	}
	if blocks := allocated(t, path); blocks > 64*disktest.KiB {
		t.Errorf("%d bytes are allocated for two blocks of data", blocks)
	}
}

func TestWhatAFileContainedIsDiscarded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk.raw")
	if err := os.WriteFile(path, bytes.Repeat([]byte("old"), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := disk.WriteRaw(t.Context(), file, memory(t, 20_000), disk.Options{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(testfile.Read(t, path), make([]byte, 20_000)) {
		t.Error("the file is not zero")
	}
}

func TestARawImageThatShrinksIsAnError(t *testing.T) {
	path := disktest.Raw(t, disktest.MiB, disktest.Range{Offset: 0, Length: disktest.MiB})
	file, size := disktest.Open(t, path)
	image, err := disk.OpenRaw(file, size)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1000); err != nil {
		t.Fatal(err)
	}
	_, err = image.ReadAt(make([]byte, 100), 2000)
	var problem *disk.FormatError
	if !errors.As(err, &problem) || err.Error() != "raw: truncated: the file ends at byte 2000 of 1048576" {
		t.Errorf("the error is %v", err)
	}
}

func TestSizesOutsideTheLimitsAreRejected(t *testing.T) {
	for size, want := range map[int64]string{
		-1:               "raw: a size of -1 bytes is outside 0 to 70368744177664",
		disk.MaxSize + 1: "raw: a size of 70368744177665 bytes is outside 0 to 70368744177664",
	} {
		if _, err := disk.OpenRaw(bytes.NewReader(nil), size); err == nil || err.Error() != want {
			t.Errorf("the error is %v instead of %s", err, want)
		}
	}
}

// failing fails to read or to write from an offset on.
type failing struct{ from int64 }

var errFailing = errors.New("the disk is on fire")

func (f failing) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > f.from {
		return 0, errFailing
	}
	for i := range p {
		p[i] = 1
	}
	return len(p), nil
}

func (f failing) WriteAt(p []byte, offset int64) (int, error) {
	if offset >= f.from {
		return 0, errFailing
	}
	return len(p), nil
}

func TestErrorsOfBothSidesEndACopy(t *testing.T) {
	const size = 64 * disktest.MiB
	open := func(from int64) disk.Image {
		image, err := disk.OpenRaw(failing{from}, size)
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	if err := disk.Copy(t.Context(), failing{size}, open(20*disktest.MiB), disk.Options{}); !errors.Is(err, errFailing) || !strings.Contains(err.Error(), "reading 1048576 bytes at byte ") {
		t.Errorf("reading: %v", err)
	}
	if err := disk.Copy(t.Context(), failing{20 * disktest.MiB}, open(size), disk.Options{}); !errors.Is(err, errFailing) || !strings.Contains(err.Error(), "writing 1048576 bytes at byte ") {
		t.Errorf("writing: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := disk.Copy(ctx, failing{size}, open(size), disk.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestProgressEndsWithAllData(t *testing.T) {
	var last int64
	options := disk.Options{Workers: 1, Progress: func(done int64) { last = max(last, done) }}
	if err := disk.Copy(t.Context(), failing{disktest.GiB}, disktest.Declared{Image: memory(t, 10*disktest.MiB), Ranges: []disk.Range{{Offset: 0, Length: 3 * disktest.MiB}}}, options); err != nil {
		t.Fatal(err)
	}
	if last != 3*disktest.MiB {
		t.Errorf("the progress ends with %d", last)
	}
}
