package mover

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/packing"
	"github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/transfer"
)

const (
	partial    = ".partial"
	resultFile = "result.json"
)

// result describes a complete package.
type result struct {
	File     string              `json:"file"`
	Digest   string              `json:"digest"`
	Size     int64               `json:"size"`
	Warnings []string            `json:"warnings,omitempty"`
	Disks    []transfer.Progress `json:"disks,omitempty"`
}

// packagePath is the path of the package.
func (m *Mover) packagePath() string {
	return m.Folders.path(transfer.ResultFolder, m.Task.Package.File)
}

// export writes the package, unless an earlier mover has done so.
func (m *Mover) export(ctx context.Context) error {
	p := m.Task.Package
	if p == nil || p.File != filepath.Base(p.File) || !filepath.IsLocal(p.File) || p.File == resultFile || strings.HasSuffix(p.File, partial) || p.DownloadToken == "" {
		return failed(transfer.ReasonInvalidTask, false, "the task has no package with the name of a file and a token")
	}
	if _, err := os.Stat(m.Folders.path(transfer.ResultFolder)); err != nil {
		return failed(transfer.ReasonInvalidTask, false, "the volume for the package is not mounted: %v", cause(err))
	}
	made := m.exported()
	if made == nil {
		disks, closeDisks, err := m.openDisks()
		if err != nil {
			return err
		}
		defer closeDisks()
		if made, err = m.pack(ctx, disks); err != nil {
			return err
		}
	}
	m.publish(made)
	if p.Target == nil {
		return nil
	}
	return m.push(ctx)
}

// exported returns the result of an earlier mover, and nil if there is none.
func (m *Mover) exported() *result {
	content, err := readSmall(m.Folders.path(transfer.ResultFolder, resultFile))
	if err != nil {
		return nil
	}
	r := &result{}
	if json.Unmarshal(content, r) != nil || r.File != m.Task.Package.File {
		return nil
	}
	if info, err := os.Stat(m.packagePath()); err != nil || info.Size() != r.Size {
		return nil
	}
	return r
}

func (m *Mover) publish(r *result) {
	m.report.change(func(s *transfer.State) {
		s.Digest, s.Size, s.Warnings = r.Digest, r.Size, r.Warnings
		if r.Disks != nil {
			s.Disks = r.Disks
		}
	})
}

// openDisks opens the disks of the task.
func (m *Mover) openDisks() (disks []packing.Disk, closeDisks func(), err error) {
	closeDisks = func() {
		for _, each := range disks {
			_ = each.Content.Close()
		}
	}
	var sum int64
	for _, d := range m.Task.Disks {
		file, err := m.Folders.disk(d, os.O_RDONLY)
		if err != nil {
			closeDisks()
			return nil, nil, failed(transfer.ReasonInvalidTask, false, "the volume of the disk %s cannot be opened: %v", d.Name, cause(err))
		}
		each := packing.Disk{Name: d.Name, Volume: d.Volume, CDROM: d.CDROM, Content: file}
		disks = append(disks, each)
		has, err := file.Seek(0, io.SeekEnd)
		if err != nil {
			closeDisks()
			return nil, nil, fmt.Errorf("reading the size of the disk %s: %w", d.Name, err)
		}
		size := has
		if d.Block && d.Size > 0 && d.Size < has {
			size = d.Size
		}
		disks[len(disks)-1].Size = size
		sum += size
	}
	if err := m.checkDisks(len(disks), sum); err != nil {
		closeDisks()
		return nil, nil, err
	}
	return disks, closeDisks, nil
}

// meter reports the progress of a disk.
func (m *Mover) meter(d packing.Disk, total int64) (func(done int64), func()) {
	update := m.report.disk(d.Name)
	update(func(p *transfer.Progress) { p.Done, p.Total = 0, total })
	return func(done int64) {
		update(func(p *transfer.Progress) { p.Done = max(p.Done, min(done, p.Total)) })
	}, func() {}
}

// pack writes the package.
func (m *Mover) pack(ctx context.Context, disks []packing.Disk) (*result, error) {
	vm, err := virtualmachine.Decode(m.Task.Package.VM)
	if err != nil {
		return nil, failed(transfer.ReasonInvalidTask, false, "the VirtualMachine of the task: %v", err)
	}
	t := &v1beta1.VirtualMachineTemplate{}
	if err := json.Unmarshal(m.Task.Package.Template, t); err != nil {
		return nil, failed(transfer.ReasonInvalidTask, false, "the template of the task: %v", err)
	}
	if err := packing.CheckCompression(m.Task.Package.Compression); err != nil {
		return nil, failed(transfer.ReasonInvalidTask, false, "%v", err)
	}
	r := &result{File: m.Task.Package.File}
	var write func(ctx context.Context, file *os.File) error
	switch m.Task.Package.Format {
	case v1beta1.ExportOVA, "":
		made, err := packing.NewOVA(t, vm, disks, m.Task.Package.Compression, m.meter)
		if err != nil {
			return nil, err
		}
		for _, note := range made.Notes {
			r.Warnings = append(r.Warnings, note.String())
		}
		write = made.Write
	case v1beta1.ExportOCI:
		made, err := packing.NewOCI(t, vm, disks, m.Task.Package.Compression, m.meter)
		if err != nil {
			return nil, err
		}
		r.Warnings, write = made.Warnings, made.Write
	default:
		return nil, failed(transfer.ReasonInvalidTask, false, "the task has the format %q", m.Task.Package.Format)
	}
	if err := m.write(ctx, r, write); err != nil {
		return nil, err
	}
	return r, nil
}

// write writes the file, and then the result beside it.
func (m *Mover) write(ctx context.Context, r *result, content func(ctx context.Context, file *os.File) error) (err error) {
	path := m.packagePath()
	file, err := os.OpenFile(path+partial, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err = content(ctx, file); err == nil {
		r.Size, err = complete(ctx, file, sum)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(path+partial))
	}
	r.Digest = textOf(sum)
	m.report.change(func(s *transfer.State) {
		for i := range s.Disks {
			s.Disks[i].Done = s.Disks[i].Total
		}
		r.Disks = append([]transfer.Progress(nil), s.Disks...)
	})
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// The package gets its name last: a result without a package is none.
	at := m.Folders.path(transfer.ResultFolder, resultFile)
	if err := os.WriteFile(at+partial, text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(at+partial, at); err != nil {
		return err
	}
	return os.Rename(path+partial, path)
}

// complete makes the content of a file durable while its digest is computed, and returns its size.
func complete(ctx context.Context, file *os.File, sum io.Writer) (size int64, err error) {
	synced := make(chan error)
	go func() { synced <- file.Sync() }()
	if _, err = file.Seek(0, io.SeekStart); err == nil {
		size, err = io.CopyBuffer(struct{ io.Writer }{sum}, &interruptible{ctx, file}, make([]byte, 1<<20))
	}
	return size, errors.Join(err, <-synced)
}
