package ova

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/vmstencil/stencil/ovf"
)

// WriterOptions specify how an OVA is written.
type WriterOptions struct {
	// Name is the name of the descriptor, the manifest and the certificate without their extension.
	Name string
	// Modified is the time of all members, in seconds; 1970 if it is zero, so that the same content becomes the same bytes.
	Modified time.Time
	// Signer signs the manifest, unless it is nil.
	Signer *Signer
}

// Writer writes an OVA.
type Writer struct {
	options  WriterOptions
	archive  *tar.Writer
	files    []ovf.File
	manifest bytes.Buffer
	err      error
}

// NewWriter writes the descriptor of an envelope. All of its files must have sizes; pass their bytes to Add in the envelope's order, and then call Close.
func NewWriter(w io.Writer, e *ovf.Envelope, options WriterOptions) (*Writer, error) {
	descriptor, err := describe(e, options)
	if err != nil {
		return nil, err
	}
	return newWriter(w, descriptor, e.Files, options)
}

// describe encodes the descriptor and checks the names and sizes. Line feeds at its end make its length independent of the sizes of the files, so that
// Create can write it after them.
func describe(e *ovf.Envelope, options WriterOptions) ([]byte, error) {
	var b bytes.Buffer
	if err := ovf.Encode(&b, e); err != nil {
		return nil, err
	}
	const longest = len("9223372036854775807")
	for _, f := range e.Files {
		b.WriteString(strings.Repeat("\n", max(longest-len(strconv.FormatInt(f.Size, 10)), 0)))
	}
	return b.Bytes(), checkFiles(e.Files, options)
}

func checkFiles(files []ovf.File, options WriterOptions) error {
	c := newContents()
	admit := func(name string) error {
		_, err := c.admit(&tar.Header{Typeflag: tar.TypeReg, Name: name})
		return err
	}
	for _, extension := range []string{".ovf", ".mf", ".cert"} {
		if err := admit(options.Name + extension); err != nil {
			return fmt.Errorf("writing an OVA: %w", err)
		}
	}
	for i := range files {
		if files[i].Size < 0 {
			return fmt.Errorf("writing an OVA: the file %s has no size in the envelope", shown(files[i].Href))
		}
		for _, part := range parts(&files[i]) {
			if err := admit(part.name); err != nil {
				return fmt.Errorf("writing an OVA: %w", err)
			}
		}
	}
	if options.Signer != nil {
		_, err := options.Signer.check()
		return err
	}
	return nil
}

func newWriter(w io.Writer, descriptor []byte, files []ovf.File, options WriterOptions) (*Writer, error) {
	if options.Modified.IsZero() {
		options.Modified = time.Unix(0, 0)
	}
	n := &Writer{options: options, archive: tar.NewWriter(w), files: files}
	if err := n.member(options.Name+".ovf", int64(len(descriptor)), bytes.NewReader(descriptor), true); err != nil {
		return nil, err
	}
	return n, nil
}

// header is the header of a member. It is that of ustar for up to 8 GiB and short names, which every reader understands, and GNU's beyond: its length
// depends on the name only.
func header(name string, size int64, modified time.Time) *tar.Header {
	format := tar.FormatUSTAR
	if size > 1<<33-1 || len(name) > maxUSTARName {
		format = tar.FormatGNU
	}
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: modified.Truncate(time.Second), Format: format}
}

// maxUSTARName is the longest name of a member in a header of ustar. Longer ones need directories.
const maxUSTARName = 100

// member writes size bytes of r.
func (w *Writer) member(name string, size int64, r io.Reader, listed bool) error {
	if err := w.archive.WriteHeader(header(name, size, w.options.Modified)); err != nil {
		return fmt.Errorf("writing the member %s of an OVA: %w", shown(name), err)
	}
	h := sha256.New()
	switch n, err := io.CopyN(io.MultiWriter(w.archive, h), r, size); {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("writing the member %s of an OVA: its content has %d bytes, and %d were announced", shown(name), n, size)
	case err != nil:
		return fmt.Errorf("writing the member %s of an OVA: %w", shown(name), err)
	}
	if listed {
		w.manifest.WriteString(line(name, h.Sum(nil)))
	}
	return nil
}

// Add writes the next file of the envelope, in chunks if File.ChunkSize is set. r must return as many bytes as its size in the envelope. After an
// error, the OVA is not usable.
func (w *Writer) Add(r io.Reader) error {
	if w.err == nil {
		w.err = w.add(r)
	}
	return w.err
}

func (w *Writer) add(r io.Reader) error {
	if len(w.files) == 0 {
		return errors.New("writing an OVA: the envelope has no further file")
	}
	f := &w.files[0]
	w.files = w.files[1:]
	for _, part := range parts(f) {
		if err := w.member(part.name, part.size, r, true); err != nil {
			return err
		}
	}
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("writing the member %s of an OVA: its content has more than the %d bytes that were announced", shown(f.Href), f.Size)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("writing the member %s of an OVA: %w", shown(f.Href), err)
	}
	return nil
}

// Close writes the manifest, the signature if there is a signer, and the end of the archive. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.err = errors.New("writing an OVA: it is closed")
	if len(w.files) > 0 {
		return fmt.Errorf("writing an OVA: the file %s and %d others were not added", shown(w.files[0].Href), len(w.files)-1)
	}
	if err := w.closeManifest(); err != nil {
		return err
	}
	if err := w.archive.Close(); err != nil {
		return fmt.Errorf("writing the end of an OVA: %w", err)
	}
	return nil
}

// closeManifest writes the manifest and the certificate.
func (w *Writer) closeManifest() error {
	manifest := w.manifest.Bytes()
	name := w.options.Name + ".mf"
	if err := w.member(name, int64(len(manifest)), bytes.NewReader(manifest), false); err != nil {
		return err
	}
	if w.options.Signer != nil {
		certificate, err := w.options.Signer.sign(name, manifest)
		if err != nil {
			return err
		}
		if err := w.member(w.options.Name+".cert", int64(len(certificate)), bytes.NewReader(certificate), false); err != nil {
			return err
		}
	}
	return nil
}

// Size returns the size in bytes of the OVA that a Writer writes, so that it can be announced beforehand.
func Size(e *ovf.Envelope, options WriterOptions) (int64, error) {
	descriptor, err := describe(e, options)
	if err != nil {
		return 0, err
	}
	manifest := int64(0)
	// Two blocks of zeros end an archive.
	total := int64(2 * blockSize)
	add := func(name string, size int64, listed bool) {
		total += headerSize(name) + padded(size)
		if listed {
			manifest += int64(len(line(name, make([]byte, sha256.Size))))
		}
	}
	add(options.Name+".ovf", int64(len(descriptor)), true)
	for i := range e.Files {
		for _, part := range parts(&e.Files[i]) {
			add(part.name, part.size, true)
		}
	}
	add(options.Name+".mf", manifest, false)
	if options.Signer != nil {
		certificate, err := options.Signer.size(options.Name + ".mf")
		if err != nil {
			return 0, err
		}
		add(options.Name+".cert", certificate, false)
	}
	return total, nil
}

// headerSize returns the bytes of the header of a member. A long name is a member of its own before it, with a zero at its end.
func headerSize(name string) int64 {
	if len(name) > maxUSTARName {
		return 2*blockSize + padded(int64(len(name))+1)
	}
	return blockSize
}

// Sign writes an OVA with the same descriptor and files and a new manifest and signature. The members get the name of the descriptor. It compares
// digests with the old manifest, if there is one, before it writes the signature.
func Sign(w io.Writer, p *Package, signer *Signer) error {
	name := strings.TrimSuffix(p.DescriptorName(), path.Ext(p.DescriptorName()))
	options := WriterOptions{Name: name, Signer: signer}
	files := append([]ovf.File(nil), p.contents.envelope.Files...)
	for i := range files {
		files[i].Size = p.Raw(&files[i]).Size()
	}
	if err := checkFiles(files, options); err != nil {
		return err
	}
	if err := p.Verify(nil); err != nil && !errors.Is(err, ErrNoManifest) {
		return err
	}
	n, err := newWriter(w, p.Descriptor(), files, options)
	if err != nil {
		return err
	}
	for i := range files {
		if err := n.Add(p.Raw(&files[i])); err != nil {
			return err
		}
	}
	return n.Close()
}
