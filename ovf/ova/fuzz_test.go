package ova_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/vmstencil/stencil/ovf/ova"
)

// FuzzOVA checks that an archive that is accepted as a stream is accepted with random access as well, with the same files, and that contents end.
func FuzzOVA(f *testing.F) {
	described := descriptor(`ovf:href="a"`)
	for _, entries := range [][]entry{
		{described, manifest(described, file("a", "disk")), file("a", "disk")},
		{file("a", "disk"), described},
		{described, file("a", "disk"), manifest(described, file("a", "disk")), file("vm.cert", certificateOf(f))},
		{descriptor(`ovf:href="a" ovf:size="7" ovf:chunkSize="4"`), file("a.000000000", "disk"), file("a.000000001", "ett")},
		{descriptor(`ovf:href="a" ovf:compression="gzip"`), file("a", gzipped(f, "disk"))},
		{descriptor(`ovf:href="a" ovf:compression="xz"`), file("a", xzipped(f, xz.WriterConfig{}, "disk"))},
	} {
		f.Add(archive(f, entries...))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		files, _, streamed := readStream(bytes.NewReader(raw))
		p, err := openAndVerify(raw)
		if streamed == nil && err != nil {
			t.Fatalf("accepted as a stream, and rejected with random access: %v", err)
		}
		if err != nil {
			return
		}
		for i := range p.Envelope().Files {
			file := &p.Envelope().Files[i]
			stored, err := io.ReadAll(p.Raw(file))
			if err != nil {
				t.Fatal(err)
			}
			first := file.Href
			if file.ChunkSize > 0 {
				first += ".000000000"
			}
			if streamed == nil {
				if got, found := files[first]; !found || got != string(stored) {
					t.Errorf("%s: %d bytes as a stream, and %d with random access", first, len(got), len(stored))
				}
			}
			content, err := p.Content(file)
			if err != nil {
				continue
			}
			// Content ends by itself or at its limit; here, at 1 MiB.
			_, err = io.CopyN(io.Discard, content, 1<<20)
			var own *ova.Error
			if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &own) {
				t.Errorf("%s: an error of another type: %v", first, err)
			}
		}
	})
}

// FuzzXZ checks that the guard of dictionaries changes nothing: what the decompressor accepts without it, it accepts with it, as the same bytes.
func FuzzXZ(f *testing.F) {
	f.Add([]byte(xzipped(f, xz.WriterConfig{}, "disk")))
	f.Add([]byte(xzipped(f, xz.WriterConfig{BlockSize: 100, CheckSum: xz.SHA256}, string(bytes.Repeat([]byte("abc"), 200)))))
	two := xzipped(f, xz.WriterConfig{CheckSum: xz.CRC32}, "disk")
	f.Add([]byte(two + "\x00\x00\x00\x00" + two))
	f.Add([]byte(xzipped(f, xz.WriterConfig{}, "")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if bytes.Contains(raw, []byte{0x21, 1, 40}) || bytes.Contains(raw, []byte{0x21, 1, 39}) {
			// The bare decompressor would allocate gigabytes.
			return
		}
		want, wantErr := expandBare(raw)
		archived := archive(t, descriptor(`ovf:href="a" ovf:compression="xz"`), file("a", string(raw)))
		p, err := openAndVerify(archived)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		content, err := p.Content(p.Envelope().File("f0"))
		if err == nil {
			got, err = io.ReadAll(io.LimitReader(content, 1<<20))
		}
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("with the guard %d bytes, %v; without it %d bytes, %v", len(got), err, len(want), wantErr)
		}
	})
}

func expandBare(raw []byte) ([]byte, error) {
	r, err := xz.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, 1<<20))
}
