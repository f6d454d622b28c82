package ova

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vmstencil/stencil/ovf"
)

// Create writes an OVA in one pass over its files, of which the sizes are not known before: what precedes them, and the header of each, are written after
// them. content writes file i of the envelope, which gets its size; chunks are not possible. w begins at byte 0 and is empty. The members are those that a
// Writer writes, but manifest and certificate follow the descriptor, so that a reader of the stream has the digests before the files.
func Create(w io.WriteSeeker, e *ovf.Envelope, options WriterOptions, content func(w io.Writer, i int) error) error {
	if options.Modified.IsZero() {
		options.Modified = time.Unix(0, 0)
	}
	for i := range e.Files {
		if e.Files[i].ChunkSize > 0 {
			return fmt.Errorf("writing an OVA: the file %s has chunks", shown(e.Files[i].Href))
		}
		e.Files[i].Size = 0
	}
	end, err := headSize(e, options)
	if err != nil {
		return err
	}
	n := &Writer{options: options}
	for i := range e.Files {
		if end, err = n.place(w, end, &e.Files[i], func(w io.Writer) error { return content(w, i) }); err != nil {
			return err
		}
	}
	if err := n.head(w, e); err != nil {
		return err
	}
	archive, err := archiveAt(w, end)
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		return fmt.Errorf("writing the end of an OVA: %w", err)
	}
	return nil
}

// headSize returns the size of what precedes the files: descriptor, manifest and certificate. It does not depend on the files' sizes.
func headSize(e *ovf.Envelope, options WriterOptions) (int64, error) {
	descriptor, err := describe(e, options)
	if err != nil {
		return 0, err
	}
	manifest, total := int64(0), int64(0)
	names := []string{options.Name + ".ovf"}
	for i := range e.Files {
		names = append(names, e.Files[i].Href)
	}
	for _, name := range names {
		manifest += int64(len(line(name, make([]byte, sha256.Size))))
	}
	add := func(extension string, size int64) { total += headerSize(options.Name+extension) + padded(size) }
	add(".ovf", int64(len(descriptor)))
	add(".mf", manifest)
	if options.Signer != nil {
		certificate, err := options.Signer.size(options.Name + ".mf")
		if err != nil {
			return 0, err
		}
		add(".cert", certificate)
	}
	return total, nil
}

// head writes what precedes the files, whose digests are in the manifest.
func (w *Writer) head(to io.WriteSeeker, e *ovf.Envelope) error {
	descriptor, err := describe(e, w.options)
	if err != nil {
		return err
	}
	files := w.manifest.String()
	w.manifest.Reset()
	if w.archive, err = archiveAt(to, 0); err != nil {
		return err
	}
	if err := w.member(w.options.Name+".ovf", int64(len(descriptor)), bytes.NewReader(descriptor), true); err != nil {
		return err
	}
	w.manifest.WriteString(files)
	if err := w.closeManifest(); err != nil {
		return err
	}
	if err := w.archive.Flush(); err != nil {
		return fmt.Errorf("writing the manifest of an OVA: %w", err)
	}
	return nil
}

// archiveAt returns a writer of members from an offset on.
func archiveAt(w io.WriteSeeker, offset int64) (*tar.Writer, error) {
	if _, err := w.Seek(offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("writing an OVA: %w", err)
	}
	return tar.NewWriter(w), nil
}

// place writes a file at an offset, behind the room for its header, and then the header. It returns the end of the member.
func (w *Writer) place(to io.WriteSeeker, offset int64, f *ovf.File, content func(w io.Writer) error) (end int64, err error) {
	wrong := func(err error) (int64, error) {
		return 0, fmt.Errorf("writing the member %s of an OVA: %w", shown(f.Href), err)
	}
	start := offset + headerSize(f.Href)
	if _, err := to.Seek(start, io.SeekStart); err != nil {
		return wrong(err)
	}
	h := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(to, h), 1<<20)
	if err := errors.Join(content(buffered), buffered.Flush()); err != nil {
		return wrong(err)
	}
	last, err := to.Seek(0, io.SeekCurrent)
	if err != nil {
		return wrong(err)
	}
	f.Size = last - start
	end = start + padded(f.Size)
	if _, err := to.Write(make([]byte, end-last)); err != nil {
		return wrong(err)
	}
	archive, err := archiveAt(to, offset)
	if err != nil {
		return 0, err
	}
	if err := archive.WriteHeader(header(f.Href, f.Size, w.options.Modified)); err != nil {
		return wrong(err)
	}
	w.manifest.WriteString(line(f.Href, h.Sum(nil)))
	return end, nil
}
