package ova

import (
	"archive/tar"
	"crypto"
	"crypto/x509"
	"errors"
	"io"
	"time"

	"github.com/vmstencil/stencil/ovf"
)

// Reader reads an OVA as one stream, in which every byte passes once.
type Reader struct {
	contents *contents
	in       *counter
	archive  *tar.Reader
	// member is the current member; open is true until its content has been read.
	member Member
	open   bool
	hash   hasher
	end    int64
	err    error
}

// Entry is a file of the stream.
type Entry struct {
	// Member is the member of the archive, or the first one if the file is split into chunks.
	Member Member
	// File is the file of the descriptor; nil if the descriptor comes later in the stream.
	File *ovf.File

	reader *Reader
	// start are bytes that were read ahead.
	start []byte
	// at is the name of the current chunk, or of the only one.
	at string
	// rest are the chunks that follow.
	rest []part
}

// NewReader returns a reader of an OVA. It reads ahead of what Next and Read return by less than one block.
func NewReader(r io.Reader) *Reader {
	in := &counter{in: r}
	return &Reader{contents: newContents(), in: in, archive: tar.NewReader(in)}
}

// SkipDigests has the reader compare no digests with the manifest. Call it before Next.
func (r *Reader) SkipDigests() { r.contents.skipDigests = true }

// Next returns the next file, in the order of the archive. What was not read of the previous one is skipped. The descriptor, the manifest and the
// certificate are not returned; see Envelope. At the end of the archive, Next returns io.EOF if all files of the descriptor were there, and
// all digests match the manifest, if there is one. Before that, nothing that was read is verified: discard it after any other error.
func (r *Reader) Next() (*Entry, error) {
	if r.err == nil {
		var entry *Entry
		if entry, r.err = r.next(); r.err == nil {
			return entry, nil
		}
	}
	return nil, r.err
}

func (r *Reader) next() (*Entry, error) {
	for {
		err := r.advance()
		if errors.Is(err, io.EOF) {
			return nil, r.finish()
		}
		if err != nil {
			return nil, err
		}
		isMetadata, err := r.contents.metadata(r.member, memberReader{r})
		if err != nil {
			return nil, err
		}
		if isMetadata {
			continue
		}
		if entry, err := r.entry(); entry != nil || err != nil {
			return entry, err
		}
	}
}

// advance goes to the next member. It returns io.EOF after the last one.
func (r *Reader) advance() error {
	if err := r.skip(); err != nil {
		return err
	}
	header, err := r.archive.Next()
	if err != nil && r.member.Name == "" && string(r.in.start) == gzipMagic {
		return errPacked
	}
	if errors.Is(err, io.EOF) {
		if r.in.n < r.end+blockSize {
			return fail("", "is truncated: its end mark is missing; transfer it again")
		}
		return io.EOF
	}
	if err != nil {
		return broken(r.member.Name, err)
	}
	if r.member, err = r.contents.admit(header); err != nil {
		return err
	}
	r.end = r.in.n + r.member.least()
	r.open, r.hash = true, newHasher(r.contents.manifest, r.member.Name)
	return nil
}

// skip reads the rest of the current member, for its digest.
func (r *Reader) skip() error {
	if !r.open {
		return nil
	}
	_, err := io.Copy(io.Discard, memberReader{r})
	return err
}

// memberReader reads the current member.
type memberReader struct{ *Reader }

func (m memberReader) Read(p []byte) (int, error) {
	r := m.Reader
	if !r.open {
		return 0, io.EOF
	}
	n, err := r.archive.Read(p)
	_, _ = r.hash.Write(p[:n])
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.err = broken(r.member.Name, err)
		return n, r.err
	}
	r.open = false
	r.contents.digests[r.member.Name] = r.hash.sums()
	if err := r.contents.checkDigest(r.member.Name); err != nil {
		r.err = err
		return n, err
	}
	return n, io.EOF
}

// entry finds the file of the current member. It returns nil if the descriptor does not refer to it.
func (r *Reader) entry() (*Entry, error) {
	e := &Entry{Member: r.member, reader: r, at: r.member.Name}
	if r.contents.envelope == nil {
		return e, nil
	}
	slot, found := r.contents.expected[r.member.Name]
	switch {
	case !found:
		return nil, nil
	case !slot.isFirst():
		return nil, fail(r.member.Name, "is not in order: chunks must follow each other in a stream; read the OVA from a file, or convert it")
	case slot.parts[0].size >= 0 && slot.parts[0].size != r.member.Size:
		return nil, sizeDiffers(r.member, slot.parts[0])
	}
	e.File, e.rest = slot.file, slot.parts[1:]
	start := make([]byte, len(gzipMagic))
	n, err := io.ReadFull(memberReader{r}, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	e.start = start[:n]
	r.contents.packed(e.File, e.start)
	return e, nil
}

// Read reads the stored bytes of the file: compressed if the file is, and with its chunks joined. It may be called until the next call of Next. If
// the manifest came before the file, Read returns an error instead of io.EOF when the digest differs.
func (e *Entry) Read(p []byte) (int, error) {
	r := e.reader
	if e.at != r.member.Name {
		return 0, fail(e.Member.Name, "is read after the next member")
	}
	if len(e.start) > 0 && r.err == nil {
		n := copy(p, e.start)
		e.start = e.start[n:]
		return n, nil
	}
	for r.err == nil {
		n, err := memberReader{r}.Read(p)
		if n > 0 || err == nil {
			return n, nil
		}
		if !errors.Is(err, io.EOF) || len(e.rest) == 0 {
			return n, err
		}
		e.chunk()
	}
	return 0, r.err
}

// Digest returns the SHA-256 of the stored bytes of the file, which must have been read. It is nil if the file is split into chunks.
func (e *Entry) Digest() []byte {
	if e.at != e.Member.Name || len(e.rest) > 0 {
		return nil
	}
	return e.reader.contents.digests[e.Member.Name][crypto.SHA256]
}

// chunk goes to the next chunk of the file.
func (e *Entry) chunk() {
	r, next := e.reader, e.rest[0]
	e.rest, e.at = e.rest[1:], next.name
	err := r.advance()
	switch {
	case errors.Is(err, io.EOF):
		r.err = fail(next.name, "is missing after the chunk before it; the OVA may be truncated")
	case err != nil:
		r.err = err
	case !SameFile(r.member.Name, next.name):
		r.err = fail(r.member.Name, "is not in order: the chunk %s must come here; read the OVA from a file, or convert it", shown(next.name))
	case r.member.Size != next.size:
		r.err = sizeDiffers(r.member, next)
	default:
		e.at = r.member.Name
	}
}

// Content returns a reader of the content of the file: decompressed, and with its chunks joined. It fails if the content exceeds the limit for
// its disk, see [MaxExpandedBytes], and if the descriptor was not read yet.
func (e *Entry) Content() (io.Reader, error) {
	if e.File == nil {
		return nil, fail(e.Member.Name, "comes before the descriptor, so that its compression is unknown; read the OVA from a file, or convert it")
	}
	return e.ContentOf(e)
}

// ContentOf is Content for a reader of the entry's stored bytes, such as one that counts them. The descriptor must have been read.
func (e *Entry) ContentOf(stored io.Reader) (io.Reader, error) {
	return expand(e.File.Href, e.File.Compression, stored, limit(e.reader.contents.envelope, e.File))
}

// finish checks the whole archive after its last member.
func (r *Reader) finish() error {
	if err := r.contents.checkReferences(); err != nil {
		return err
	}
	for name := range r.contents.members {
		if err := r.contents.checkDigest(name); err != nil {
			return err
		}
	}
	return io.EOF
}

// Envelope returns the descriptor, and nil as long as it was not read.
func (r *Reader) Envelope() *ovf.Envelope { return r.contents.envelope }

// Descriptor returns the bytes of the descriptor, and nil as long as it was not read.
func (r *Reader) Descriptor() []byte { return r.contents.descriptor }

// Manifest returns the manifest, and nil as long as it was not read.
func (r *Reader) Manifest() *Manifest { return r.contents.manifest }

// VerifySignature checks that the manifest was signed by a certificate that roots trust at a time, and returns the certificate. Call it after Next has
// returned io.EOF.
func (r *Reader) VerifySignature(roots *x509.CertPool, now time.Time) (*x509.Certificate, error) {
	return r.contents.verifySignature(roots, now)
}

// counter counts bytes.
type counter struct {
	in io.Reader
	n  int64
	// start are the first bytes.
	start []byte
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	if missing := len(gzipMagic) - len(c.start); missing > 0 {
		c.start = append(c.start, p[:min(n, missing)]...)
	}
	return n, err
}
