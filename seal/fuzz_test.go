package seal

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// patched is an image with changes, as a fuzzer finds them: a whole image is too large an input.
type patched struct {
	*bytes.Reader
	patches map[int64]byte
}

func (p *patched) ReadAt(b []byte, off int64) (int, error) {
	n, err := p.Reader.ReadAt(b, off)
	for at, value := range p.patches {
		if at >= off && at < off+int64(n) {
			b[at-off] = value
		}
	}
	return n, err
}

// FuzzDisk changes bytes of real file systems. There is no recover in what it calls: a panic is a bug. A run is bounded by the limits,
// which are small here so that inputs that reach them are fast.
//
//suite:plain
func FuzzDisk(f *testing.F) {
	images := [][]byte{}
	for _, name := range []string{"ext4", "ext4-inline", "ext2-tree", "xfs", "xfs-tree", "mbr", "gpt"} {
		images = append(images, image(f, name))
	}
	f.Add(uint8(0), []byte{})
	for n := range images {
		f.Add(uint8(n), []byte{0, 0, 4, 24, 7, 0, 0, 0, 4, 255})
	}
	f.Fuzz(func(t *testing.T, number uint8, changes []byte) {
		raw := images[int(number)%len(images)]
		p := &patched{Reader: bytes.NewReader(raw), patches: map[int64]byte{}}
		for ; len(changes) >= 5 && len(p.patches) < 64; changes = changes[5:] {
			p.patches[int64(binary.BigEndian.Uint32(changes))%int64(len(raw))] = changes[4]
		}
		l := &limits{ctx: t.Context(), bytes: 4 << 20, names: 1 << 16}
		i := inspection{limits: l}
		i.disk(p, int64(len(raw)))
		if len(i.report.Findings) > MaxFindings || len(i.report.Unexamined) > MaxFindings {
			t.Errorf("%d findings, %d unexamined", len(i.report.Findings), len(i.report.Unexamined))
		}
	})
}
