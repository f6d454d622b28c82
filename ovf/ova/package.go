package ova

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"io"
	"sort"
	"time"

	"github.com/vmstencil/stencil/ovf"
)

// Package is an OVA with random access.
type Package struct {
	contents *contents
	in       *io.SectionReader
	ordered  []Member
}

// Open reads the headers, the descriptor, the manifest and the certificate of an OVA of size bytes. It checks everything but digests and the
// signature: see Verify and VerifySignature. It does not retain r's content.
func Open(r io.ReaderAt, size int64) (*Package, error) {
	section := io.NewSectionReader(r, 0, size)
	archive := tar.NewReader(section)
	p := &Package{contents: newContents(), in: section}
	end, last := int64(0), ""
	start := make([]byte, len(gzipMagic))
	if _, err := section.ReadAt(start, 0); err == nil && string(start) == gzipMagic {
		return nil, errPacked
	}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, broken(last, err)
		}
		member, err := p.contents.admit(header)
		if err != nil {
			return nil, err
		}
		// Seeking within a section does not fail. The reader of the archive is at the beginning of the member's content.
		member.offset, _ = section.Seek(0, io.SeekCurrent)
		if !member.sparse && member.Size > size-member.offset {
			return nil, fail(member.Name, "is truncated; transfer it again")
		}
		p.contents.members[member.Name] = member
		p.ordered = append(p.ordered, member)
		last, end = member.Name, member.offset+member.least()
		if _, err := p.contents.metadata(member, archive); err != nil {
			return nil, err
		}
	}
	if at, _ := section.Seek(0, io.SeekCurrent); at < end+blockSize {
		return nil, fail("", "is truncated: its end mark is missing; transfer it again")
	}
	if err := p.contents.checkReferences(); err != nil {
		return nil, err
	}
	for i := range p.contents.envelope.Files {
		f := &p.contents.envelope.Files[i]
		start := make([]byte, len(gzipMagic))
		// A file that is too short, or cannot be read, is found when it is.
		_, _ = p.Raw(f).ReadAt(start, 0)
		p.contents.packed(f, start)
	}
	return p, nil
}

// least returns the least number of bytes that the content of a member occupies. Package tar does not return the number of a sparse member.
func (m Member) least() int64 {
	if m.sparse {
		return 0
	}
	return padded(m.Size)
}

// padded returns the bytes that a member of this size occupies.
func padded(size int64) int64 { return (size + blockSize - 1) &^ (blockSize - 1) }

// Envelope returns the descriptor.
func (p *Package) Envelope() *ovf.Envelope { return p.contents.envelope }

// DescriptorName returns the name of the descriptor, such as web.ovf.
func (p *Package) DescriptorName() string { return p.contents.descriptorName }

// Descriptor returns the bytes of the descriptor.
func (p *Package) Descriptor() []byte { return p.contents.descriptor }

// Manifest returns the manifest, and nil if the OVA has none.
func (p *Package) Manifest() *Manifest { return p.contents.manifest }

// Certificate returns the signature, and nil if the OVA has none. It is not verified.
func (p *Package) Certificate() *Certificate { return p.contents.certificate }

// Members returns the members in the order of the archive.
func (p *Package) Members() []Member { return p.ordered }

// stored returns the bytes of a member, with the holes of a sparse one.
func (p *Package) stored(m Member) *io.SectionReader {
	if m.sparse {
		return io.NewSectionReader(&sparseFile{archive: p.in, name: m.Name}, 0, m.Size)
	}
	return io.NewSectionReader(p.in, m.offset, m.Size)
}

// Raw returns the stored bytes of a file of the descriptor: compressed if the file is, and with its chunks joined.
func (p *Package) Raw(f *ovf.File) *io.SectionReader {
	var joined chunks
	at := int64(0)
	for _, part := range parts(f) {
		member, _ := p.contents.member(part.name)
		joined = append(joined, chunk{at, member.Size, p.stored(member)})
		at += member.Size
	}
	return io.NewSectionReader(joined, 0, at)
}

// Content returns a reader of the content of a file: decompressed, and with its chunks joined. The reader fails if the content exceeds the
// limit for its disk; see [MaxExpandedBytes].
func (p *Package) Content(f *ovf.File) (io.Reader, error) {
	return expand(f.Href, f.Compression, p.Raw(f), limit(p.contents.envelope, f))
}

// Verify reads all members and compares their digests with the manifest. It returns [ErrNoManifest] if the OVA has none. progress may be nil; it is
// called with the number of bytes that were read since the last call, and an error that it returns ends the verification.
func (p *Package) Verify(progress func(n int64) error) error {
	if p.contents.manifest == nil {
		return ErrNoManifest
	}
	buffer := make([]byte, 256<<10)
	for _, member := range p.ordered {
		h := newHasher(p.contents.manifest, member.Name)
		in := p.stored(member)
		for {
			n, err := in.Read(buffer)
			_, _ = h.Write(buffer[:n])
			if progress != nil && n > 0 {
				if err := progress(int64(n)); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return broken(member.Name, err)
			}
		}
		p.contents.digests[member.Name] = h.sums()
		if err := p.contents.checkDigest(member.Name); err != nil {
			return err
		}
	}
	return nil
}

// VerifySignature checks that the manifest was signed by a certificate that roots trust at a time, and returns the certificate. It fails if the OVA is
// not signed. The signature covers the content of the members only together with Verify.
func (p *Package) VerifySignature(roots *x509.CertPool, now time.Time) (*x509.Certificate, error) {
	return p.contents.verifySignature(roots, now)
}

func (c *contents) verifySignature(roots *x509.CertPool, now time.Time) (*x509.Certificate, error) {
	if c.certificate == nil {
		return nil, fail("", "is not signed: it contains no member that ends in .cert")
	}
	if err := c.certificate.verify(c.manifestName, c.rawManifest, roots, now); err != nil {
		return nil, err
	}
	return c.certificate.Chain[0], nil
}

// chunks are consecutive parts of a file.
type chunks []chunk

type chunk struct {
	at, size int64
	in       io.ReaderAt
}

// ReadAt reads from the parts that contain the range.
func (c chunks) ReadAt(b []byte, at int64) (int, error) {
	n := 0
	for i := sort.Search(len(c), func(i int) bool { return at < c[i].at+c[i].size }); i < len(c) && n < len(b); i++ {
		want := b[n:]
		from := at + int64(n) - c[i].at
		if int64(len(want)) > c[i].size-from {
			want = want[:c[i].size-from]
		}
		read, err := c[i].in.ReadAt(want, from)
		n += read
		if read < len(want) {
			return n, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
