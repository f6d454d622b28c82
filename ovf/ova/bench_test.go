package ova_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/ova"
)

// BenchmarkStream reads a file of 64 MiB whose digest is known before, as in OVAs of VMware's tools, and after it, as in those of a [ova.Writer].
func BenchmarkStream(b *testing.B) {
	const size = 64 << 20
	content := strings.Repeat("0123456789abcdef", size/16)
	a := file("a", content)
	described := descriptor(`ovf:href="a"`)
	first := archive(b, described, manifest(described, a), a)
	last := write(b, envelope(ovf.File{ID: "f", Href: "a", Size: size}), ova.WriterOptions{Name: "vm"}, content)
	for name, raw := range map[string][]byte{"manifest first": first, "manifest last": last} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				r := ova.NewReader(bytes.NewReader(raw))
				for {
					e, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					if _, err := io.Copy(io.Discard, e); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
