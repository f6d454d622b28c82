package formats

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/vmdk"
	"github.com/vmstencil/stencil/internal/disktest"
)

// images of qemu-img.
var images = []struct {
	name, qemu string
	format     disk.Format
	options    []string
	// metadata is the most that is read of a disk of 100 GiB beside its data, in bytes.
	metadata int64
}{
	{"raw", "raw", disk.Raw, nil, 512},
	{"qcow2", "qcow2", disk.QCOW2, nil, disktest.MiB},
	{"qcow2, version 2", "qcow2", disk.QCOW2, []string{"-o", "compat=0.10"}, disktest.MiB},
	{"qcow2, zlib", "qcow2", disk.QCOW2, []string{"-c"}, disktest.MiB},
	{"qcow2, zstd", "qcow2", disk.QCOW2, []string{"-c", "-o", "compression_type=zstd"}, disktest.MiB},
	{"vmdk, streamOptimized", "vmdk", disk.VMDK, []string{"-o", "subformat=streamOptimized"}, 16 * disktest.MiB},
	{"vmdk, monolithicSparse", "vmdk", disk.VMDK, []string{"-o", "subformat=monolithicSparse"}, 16 * disktest.MiB},
	{"vhd, dynamic", "vpc", disk.VHD, []string{"-o", "subformat=dynamic,force_size=on"}, 16 * disktest.MiB},
	{"vhdx, dynamic", "vhdx", disk.VHDX, []string{"-o", "subformat=dynamic"}, 64 * disktest.MiB},
}

func TestImagesAreDetected(t *testing.T) {
	raw := disktest.Raw(t, 8*disktest.MiB, disktest.Range{Offset: disktest.MiB, Length: 64 * disktest.KiB})
	for _, tc := range images {
		t.Run(tc.name, func(t *testing.T) {
			image := disktest.Image(t, Detect, disktest.Convert(t, raw, tc.qemu, tc.options...))
			if got := image.Info().Format; got != tc.format {
				t.Errorf("the format is %s", got)
			}
			disktest.Compare(t, disktest.Extract(t, image), raw)
		})
	}
	fixed := disktest.Image(t, Detect, disktest.Convert(t, raw, "vpc", "-o", "subformat=fixed,force_size=on"))
	if got := fixed.Info().Format; got != disk.VHD {
		t.Errorf("the format of a fixed VHD is %s", got)
	}
}

func TestAnUnknownFormatIsRejected(t *testing.T) {
	_, err := Open(bytes.NewReader(nil), 0, "vdi")
	if want := `unknown disk format "vdi": choose raw, qcow2, vmdk, vhd or vhdx`; err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
}

// The disk has 128 KiB of data in two places, the first of which is across tables of all formats. Some formats store units that are larger than what is written.
func TestADiskOf100GiBCostsItsData(t *testing.T) {
	const data = 128 * disktest.KiB
	raw := disktest.Raw(t, 100*disktest.GiB, disktest.Range{Offset: disktest.GiB - data/4, Length: data / 2}, disktest.Range{Offset: 90*disktest.GiB + 12345*512, Length: data / 2})
	for _, tc := range images {
		t.Run(tc.name, func(t *testing.T) {
			file, size := disktest.Open(t, disktest.Convert(t, raw, tc.qemu, tc.options...))
			counter := &disktest.Counter{ReaderAt: file}
			var source io.ReaderAt = counter
			if tc.format == disk.Raw {
				// Holes of the file.
				source = file
			}
			image, err := Open(source, size, tc.format)
			if err != nil {
				t.Fatal(err)
			}
			counted := &disktest.Counter{ReaderAt: image}
			encoder, err := vmdk.NewEncoder(counting{image, counted}, vmdk.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "disk.vmdk")
			written, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer written.Close()
			if _, err := encoder.Write(t.Context(), written); err != nil {
				t.Fatal(err)
			}
			// Blocks of VHD and VHDX are up to 32 MiB at each end of a range.
			if got, most := counter.Bytes.Load(), data+tc.metadata+128*disktest.MiB; got > most {
				t.Errorf("%d bytes of the file are read, more than %d", got, most)
			}
			if got, most := counted.Bytes.Load(), data+128*disktest.MiB; got > most {
				t.Errorf("%d bytes of the disk are read, more than %d", got, most)
			}
			disktest.Compare(t, disktest.Extract(t, disktest.Image(t, Detect, path)), raw)
		})
	}
}

// counting is an image whose reads are counted.
type counting struct {
	disk.Image
	counter *disktest.Counter
}

func (c counting) ReadAt(p []byte, offset int64) (int, error) { return c.counter.ReadAt(p, offset) }

// pattern is a disk full of data that costs nothing to make and compresses a little. It is the same in each period.
type pattern struct{ size, period int64 }

func (p pattern) Info() disk.Info { return disk.Info{Format: disk.Raw, Size: p.size, Unit: 1} }

func (p pattern) NextData(offset int64) (disk.Range, error) {
	if offset >= p.size {
		return disk.Range{}, io.EOF
	}
	return disk.Range{Offset: offset, Length: p.size - offset}, nil
}

func (p pattern) ReadAt(b []byte, offset int64) (int, error) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64((offset+int64(i))%p.period)*0x9e3779b97f4a7c15>>20)
	}
	return len(b), nil
}

// discard is where a disk is written.
type discard struct{}

func (discard) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (discard) Write(p []byte) (int, error)            { return len(p), nil }

// Everything that is allocated while a disk is read or written is less than the limit, so that the memory in use is.
func TestMemoryDoesNotGrowWithTheDisk(t *testing.T) {
	const limit = 128 * disktest.MiB
	size := memorySize
	// The most that there may be.
	options := disk.Options{Workers: 16}
	path := filepath.Join(t.TempDir(), "disk.vmdk")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The images of qemu-img are recorded in one size.
	const imageSize = 160 * disktest.MiB
	raw := disktest.Raw(t, imageSize)
	{
		sparse, err := os.OpenFile(raw, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer sparse.Close()
		if err := disk.Copy(t.Context(), sparse, pattern{imageSize, 64 * disktest.KiB}, options); err != nil {
			t.Fatal(err)
		}
	}
	encode := func(encoding vmdk.Encoding, w io.Writer) func(context.Context) error {
		return func(ctx context.Context) error {
			encoder, err := vmdk.NewEncoder(pattern{size, size}, vmdk.EncodeOptions{Options: options, Encoding: encoding})
			if err != nil {
				return err
			}
			_, err = encoder.Write(ctx, w)
			return err
		}
	}
	read := func(path string) func(context.Context) error {
		return func(ctx context.Context) error {
			return disk.Copy(ctx, discard{}, disktest.Image(t, Detect, path), options)
		}
	}
	for _, tc := range []struct {
		name string
		work func(context.Context) error
	}{
		{"writing vmdk", encode(vmdk.Fast, file)},
		{"writing vmdk, best", encode(vmdk.Best, discard{})},
		{"writing vmdk, uncompressed", encode(vmdk.Uncompressed, discard{})},
		{"writing vmdk, stored", encode(vmdk.Stored, discard{})},
		{"reading vmdk", read(path)},
		{"reading vmdk as a stream", func(ctx context.Context) error {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return err
			}
			stream, err := vmdk.NewStream(file)
			if err != nil {
				return err
			}
			return stream.Copy(ctx, discard{}, options)
		}},
		{"reading raw", read(raw)},
		{"reading qcow2, clusters of 2 MiB", read(disktest.Convert(t, raw, "qcow2", "-o", "cluster_size=2M"))},
		{"reading qcow2, zlib", read(disktest.Convert(t, raw, "qcow2", "-c"))},
		{"reading qcow2, zstd, clusters of 2 MiB", read(disktest.Convert(t, raw, "qcow2", "-c", "-o", "compression_type=zstd,cluster_size=2M"))},
		{"reading vhd", read(disktest.Convert(t, raw, "vpc"))},
		{"reading vhdx", read(disktest.Convert(t, raw, "vhdx"))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := tc.work(t.Context()); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			allocated := int64(after.TotalAlloc - before.TotalAlloc)
			t.Logf("%d KiB", allocated/disktest.KiB)
			if allocated > limit {
				t.Errorf("%d bytes are allocated", allocated)
			}
		})
	}
}

func TestHeadersOfRawDisksAreNotFollowed(t *testing.T) {
	// A guest has written the header of a qcow2 image with a backing file to the start of its disk.
	b := make([]byte, disktest.MiB)
	copy(b, "QFI\xfb\x00\x00\x00\x03")
	if _, err := Open(bytes.NewReader(b), int64(len(b)), disk.Raw); err != nil {
		t.Errorf("as raw: %v", err)
	}
	var problem *disk.FormatError
	if _, err := Detect(bytes.NewReader(b), int64(len(b))); !errors.As(err, &problem) {
		t.Errorf("detected: %v", err)
	}
}
