package mover

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/formats"
	"github.com/vmstencil/stencil/disk/vmdk"
	"github.com/vmstencil/stencil/internal/packing"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/ovf/ova"
	"github.com/vmstencil/stencil/transfer"
)

// importDisks writes the disks of a package.
func (m *Mover) importDisks(ctx context.Context) error {
	var sum int64
	for _, d := range m.Task.Disks {
		if d.File == "" {
			return failed(transfer.ReasonInvalidTask, false, "the task names no file for the disk %s", d.Name)
		}
		if d.Size > 1<<62-sum {
			return failed(transfer.ReasonInvalidTask, false, "the disk %s has %d bytes", d.Name, d.Size)
		}
		sum += d.Size
	}
	if err := m.checkDisks(len(m.Task.Disks), sum); err != nil {
		return err
	}
	switch source := m.Task.Source; {
	case source == nil:
		return failed(transfer.ReasonInvalidTask, false, "the task has no source")
	case source.Registry != nil:
		return m.importRegistry(ctx)
	}
	from, err := m.open(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	if wanted := m.Task.Revision; wanted != "" && from.Revision() != wanted {
		return failed(transfer.ReasonSourceChanged, false, "the source has changed since it was inspected: create the import again")
	}
	is, err := isLayout(ctx, from)
	if err != nil {
		return err
	}
	if is {
		return m.importLayout(ctx, from)
	}
	i := &ovaImport{Mover: m, from: from, done: map[string]bool{}}
	return i.run(ctx)
}

// ovaImport is the import of an OVA.
type ovaImport struct {
	*Mover
	from   origin
	reader *ova.Reader
	// template of the package, described is true once the description was compared.
	template  []byte
	described bool
	// done are disks that are written, by name; later are those that are read by random access.
	done  map[string]bool
	later []transfer.Disk
}

func (i *ovaImport) run(ctx context.Context) error {
	raw := i.from.Stream(ctx)
	defer raw.Close()
	stream := i.summed(&bounded{from: raw, left: i.mostStored()})
	i.reader = ova.NewReader(stream)
	if i.Task.Verification == v1beta1.ImportVerificationSkip {
		i.reader.SkipDigests()
	}
	for {
		entry, err := i.reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := i.compare(false); err != nil {
			return err
		}
		if err := i.entry(ctx, entry); err != nil {
			return err
		}
	}
	if err := i.lateTemplate(ctx); err != nil {
		return err
	}
	if err := i.compare(true); err != nil {
		return err
	}
	if i.Task.Verification == v1beta1.ImportVerificationRequire && i.reader.Manifest() == nil {
		return ova.ErrNoManifest
	}
	if err := i.compareChecksum(stream); err != nil {
		return err
	}
	if err := i.rest(ctx); err != nil {
		return err
	}
	for _, d := range i.Task.Disks {
		if !i.done[d.Name] {
			return failed(transfer.ReasonSourceChanged, false, "the package has no file %.200q for the disk %s", d.File, d.Name)
		}
	}
	return nil
}

// compare compares the description with that of the task, as soon as it is complete.
func (i *ovaImport) compare(ended bool) error {
	e := i.reader.Envelope()
	if i.described || e == nil {
		return nil
	}
	if conversion.EmbeddedFile(e) != nil && i.template == nil && !ended {
		return nil
	}
	i.described = true
	if got := digestOf(i.reader.Descriptor(), i.template); i.Task.Description != "" && got != i.Task.Description {
		return failed(transfer.ReasonSourceChanged, false, "the descriptor of the package has changed since it was inspected: create the import again")
	}
	return nil
}

// lateTemplate reads the template of a package that comes before the descriptor.
func (i *ovaImport) lateTemplate(ctx context.Context) error {
	if i.template != nil || conversion.EmbeddedFile(i.reader.Envelope()) == nil {
		return nil
	}
	if i.from.random(ctx) == nil {
		return failed(transfer.ReasonUnsupported, false, "the template of the package comes before its descriptor, and the server does not support ranges")
	}
	read, err := i.describe(ctx, i.from)
	if err == nil {
		i.template = read.template
	}
	return err
}

// disks are the disks that are made of a file.
func (i *ovaImport) disks(file string) (all []transfer.Disk) {
	for _, d := range i.Task.Disks {
		if d.File == file || ova.SameFile(file, d.File) {
			all = append(all, d)
		}
	}
	return all
}

func (i *ovaImport) entry(ctx context.Context, entry *ova.Entry) error {
	if entry.File == nil {
		for _, d := range i.disks(entry.Member.Name) {
			if err := i.defers(d, "comes before the descriptor"); err != nil {
				return err
			}
		}
		return nil
	}
	if embedded := conversion.EmbeddedFile(i.reader.Envelope()); embedded != nil && embedded.ID == entry.File.ID {
		content, err := entry.Content()
		if err == nil {
			i.template, err = readTemplate(content)
		}
		if err != nil {
			return err
		}
		return i.compare(false)
	}
	for number, d := range i.disks(entry.File.Href) {
		if number > 0 {
			if err := i.defers(d, "is that of two disks"); err != nil {
				return err
			}
			continue
		}
		if err := named(d.Name, i.stream(ctx, d, entry)); err != nil {
			return err
		}
	}
	return nil
}

// defers reads a disk by random access, after the stream.
func (i *ovaImport) defers(d transfer.Disk, why string) error {
	if i.from.random(context.Background()) == nil {
		return failed(transfer.ReasonUnsupported, false, "the file of the disk %s %s, and the server does not support ranges", d.Name, why)
	}
	i.later = append(i.later, d)
	return nil
}

// format returns the format of the disk in a file, and its content, of which the start has been read ahead.
func (i *ovaImport) format(f *ovf.File, d transfer.Disk, from io.Reader) (disk.Format, io.Reader, error) {
	content := bufio.NewReaderSize(from, disk.MagicBytes)
	start, err := content.Peek(disk.MagicBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, err
	}
	uri := ""
	for _, each := range i.reader.Envelope().Disks {
		if each.FileRef == f.ID {
			uri = each.Format
		}
	}
	format, err := packing.Format(uri, f.Href, d.CDROM, start)
	if err != nil {
		return "", nil, failed(transfer.ReasonUnsupported, false, "the disk %s: %v", d.Name, err)
	}
	return format, content, nil
}

// stream writes a disk as it passes.
func (i *ovaImport) stream(ctx context.Context, d transfer.Disk, entry *ova.Entry) (err error) {
	size := entry.File.Size
	if size < 0 {
		size = entry.Member.Size
	}
	// The digests of a chunk are not that of the file.
	var sum hash.Hash
	var from io.Reader = entry
	if entry.File.ChunkSize > 0 {
		sum = sha256.New()
		from = io.TeeReader(entry, sum)
	}
	stored := i.counted(d, from, size)
	expanded, err := expand(entry, stored)
	if err != nil {
		return err
	}
	format, content, err := i.format(entry.File, d, expanded)
	if err != nil {
		return err
	}
	t, err := i.openTarget(ctx, d, stored.n.Load)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.file.Close()) }()
	err = i.copyStream(ctx, t, format, content)
	if errors.Is(err, vmdk.ErrNotStream) {
		if entry.File.Compression != "" {
			return noStream(d)
		}
		if err := i.defers(d, "is of a kind that cannot be read as a stream"); err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, stored)
		return err
	}
	if err != nil {
		return err
	}
	// Formats end before their file does.
	if _, err := io.Copy(io.Discard, stored); err != nil {
		return err
	}
	if err := t.finish(); err != nil {
		return err
	}
	i.done[d.Name] = true
	digest := entry.Digest()
	if sum != nil {
		digest = sum.Sum(nil)
	}
	i.report.disk(d.Name)(func(p *transfer.Progress) { p.Digest = "sha256:" + hex.EncodeToString(digest) })
	return nil
}

// expand returns the content of a file, whose stored bytes are counted.
func expand(entry *ova.Entry, stored *meter) (io.Reader, error) {
	if entry.File.Compression == "" {
		return stored, nil
	}
	return entry.ContentOf(stored)
}

// copyStream writes the content of a disk in the order in which it arrives. It returns vmdk.ErrNotStream if the format needs random access.
func (i *ovaImport) copyStream(ctx context.Context, t *target, format disk.Format, content io.Reader) error {
	switch format {
	case disk.Raw:
		return copyRaw(ctx, t, content)
	case disk.VMDK:
		return i.streamVMDK(ctx, t, content)
	}
	return vmdk.ErrNotStream
}

func noStream(d transfer.Disk) error {
	return failed(transfer.ReasonUnsupported, false, "the file of the disk %s is compressed, and its format is one that cannot be read as a stream: expand it, or convert it to streamOptimized VMDK", d.Name)
}

func (i *ovaImport) streamVMDK(ctx context.Context, t *target, content io.Reader) error {
	// Digests of large reads are computed faster, and in parallel.
	stream, err := vmdk.NewStream(bufio.NewReaderSize(content, 1<<20))
	if err != nil {
		return err
	}
	if stream.Size() > t.disk.Size {
		return failed(transfer.ReasonNotAPackage, false, "the disk %s has %d bytes, and %d according to the descriptor", t.disk.Name, stream.Size(), t.disk.Size)
	}
	return stream.Copy(ctx, t, disk.Options{})
}

// copyRaw writes a raw disk without its zeros.
func copyRaw(ctx context.Context, t *target, content io.Reader) error {
	buffer := make([]byte, 1<<20)
	for offset := int64(0); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(content, buffer)
		if int64(n) > t.disk.Size-offset {
			return failed(transfer.ReasonNotAPackage, false, "the disk %s has more than its %d bytes", t.disk.Name, t.disk.Size)
		}
		if err := disk.WriteNonzero(t, buffer[:n], offset); err != nil {
			return err
		}
		offset += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && !isFailure(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func isFailure(err error) bool {
	var known *transfer.Failure
	var archive *ova.Error
	return errors.As(err, &known) || errors.As(err, &archive)
}

// rest writes the disks that need random access. The stream was verified before.
func (i *ovaImport) rest(ctx context.Context) error {
	if len(i.later) == 0 {
		return nil
	}
	pkg, err := ova.Open(i.from.random(ctx), i.from.Size())
	if err != nil {
		return err
	}
	if digestOf(pkg.Descriptor()) != digestOf(i.reader.Descriptor()) {
		return failed(transfer.ReasonSourceChanged, false, "the package has changed while it was read; start again")
	}
	for _, d := range i.later {
		if err := named(d.Name, i.random(ctx, pkg, d)); err != nil {
			return err
		}
	}
	return nil
}

func (i *ovaImport) random(ctx context.Context, pkg *ova.Package, d transfer.Disk) (err error) {
	var file *ovf.File
	for n := range pkg.Envelope().Files {
		if pkg.Envelope().Files[n].Href == d.File {
			file = &pkg.Envelope().Files[n]
		}
	}
	if file == nil {
		return failed(transfer.ReasonSourceChanged, false, "the package has no file %.200q", d.File)
	}
	raw := pkg.Raw(file)
	expanded, err := pkg.Content(file)
	if err != nil {
		return err
	}
	format, content, err := i.format(file, d, expanded)
	if err != nil {
		return err
	}
	t, err := i.openTarget(ctx, d, raw.Size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.file.Close()) }()
	if file.Compression != "" {
		if err = i.copyStream(ctx, t, format, content); errors.Is(err, vmdk.ErrNotStream) {
			err = noStream(d)
		}
		if err != nil {
			return err
		}
	} else {
		image, err := formats.Open(raw, raw.Size(), format)
		if err != nil {
			return err
		}
		if size := image.Info().Size; size > d.Size {
			return failed(transfer.ReasonNotAPackage, false, "the disk %s has %d bytes, and %d according to the descriptor", d.Name, size, d.Size)
		}
		if err := disk.Copy(ctx, t, image, disk.Options{}); err != nil {
			return err
		}
	}
	if err := t.finish(); err != nil {
		return err
	}
	i.done[d.Name] = true
	i.report.disk(d.Name)(func(p *transfer.Progress) { p.Total = raw.Size(); p.Done = p.Total })
	return nil
}
