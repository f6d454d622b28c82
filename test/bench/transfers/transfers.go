package transfers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/test/bench/disks"
	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/transfer"
)

// Options are the extent of the measurement.
type Options struct {
	// Module is the folder of the module of this package.
	Module string
	// Bytes of data of the disk, whose size is eight times as much.
	Bytes int64
	// Rounds is how often everything is measured.
	Rounds int
	// Progress receives the steps of the benchmark.
	Progress func(format string, arguments ...any)
}

// work is a transfer, and what the codec does for the same disk.
type work struct {
	name   string
	format v1beta1.ExportFormat
	export bool
	// from and to are the arguments of the convert command of package disks.
	from, to disk.Format
}

var works = []work{
	{"import of an OVA", v1beta1.ExportOVA, false, disk.VMDK, disk.Raw},
	{"import of an OCI archive", v1beta1.ExportOCI, false, disks.Layer, disk.Raw},
	{"export as OVA", v1beta1.ExportOVA, true, disk.Raw, disk.VMDK},
	{"export as OCI archive", v1beta1.ExportOCI, true, disk.Raw, disks.Layer},
}

// Result holds the times of each work, in nanoseconds, one per round.
type Result struct {
	mover, codec [][]float64
	// memory is the most of each work, in bytes.
	memory []int64
	bytes  int64
}

// bench is a running benchmark.
type bench struct {
	Options
	folder, mover, convert string
	// served is the URL of the folder's files.
	served string
	// source is the mounts of exports, with the disk; target those of imports.
	source, target *mounts
	imports        map[v1beta1.ExportFormat]*transfer.Task
}

// Run measures.
func Run(ctx context.Context, options Options) (result *Result, err error) {
	b := &bench{Options: options, imports: map[v1beta1.ExportFormat]*transfer.Task{}}
	if b.mover, err = product.Binary(ctx, "stencil-mover"); err != nil {
		return nil, err
	}
	if b.folder, err = os.MkdirTemp("", "stencil-bench-"); err != nil {
		return nil, fmt.Errorf("making a folder for disks: %w", err)
	}
	defer os.RemoveAll(b.folder)
	if b.convert, err = disks.BuildConvert(ctx, options.Module, b.folder); err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(b.folder)), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	b.served = "http://" + listener.Addr().String()
	result = &Result{mover: make([][]float64, len(works)), codec: make([][]float64, len(works)), memory: make([]int64, len(works))}
	options.Progress("transfers: making a disk with %d MiB of data, and its packages", options.Bytes>>20)
	if result.bytes, err = b.prepare(ctx); err != nil {
		return nil, err
	}
	for round := range options.Rounds {
		options.Progress("transfers: round %d of %d", round+1, options.Rounds)
		for i := range works {
			if err := b.measure(ctx, result, i, round); err != nil {
				return nil, fmt.Errorf("%s: %w", works[i].name, err)
			}
		}
	}
	return result, nil
}

// The template that is exported.
const (
	vm = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"web"},"spec":{"runStrategy":"Always",
"dataVolumeTemplates":[{"metadata":{"name":"web-root"},"spec":{"source":{"pvc":{"name":"fedora","namespace":"golden"}},"storage":{}}}],
"template":{"spec":{"domain":{"devices":{"disks":[{"disk":{"bus":"virtio"},"name":"root"}]},"memory":{"guest":"1Gi"}},"volumes":[{"dataVolume":{"name":"web-root"},"name":"root"}]}}}}`
	template = `{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"name":"web","namespace":"golden"},"spec":{"virtualMachine":` + vm + `}}`
)

func exportTask(format v1beta1.ExportFormat) *transfer.Task {
	return &transfer.Task{Stage: transfer.Export, Disks: []transfer.Disk{{Name: "root", Volume: "root"}}, Package: &transfer.Package{
		File: string(format), Format: format, Template: []byte(template), VM: []byte(vm), DownloadToken: "download",
	}}
}

// rootDisk is the path of the only disk below a root.
var rootDisk = filepath.Join(transfer.DisksFolder, "root", transfer.DiskFile)

// prepare makes the disk, a package of each format, and the tasks of their imports. It returns the bytes of data of the disk.
func (b *bench) prepare(ctx context.Context) (data int64, err error) {
	if b.source, err = newMounts(filepath.Join(b.folder, "source")); err != nil {
		return 0, err
	}
	if b.target, err = newMounts(filepath.Join(b.folder, "target")); err != nil {
		return 0, err
	}
	for _, name := range []string{rootDisk, transfer.ResultFolder + "/.keep"} {
		if err := b.source.write(name, nil); err != nil {
			return 0, err
		}
	}
	if data, err = disks.MakeDisk(b.source.path(rootDisk), b.Bytes); err != nil {
		return 0, err
	}
	for _, format := range []v1beta1.ExportFormat{v1beta1.ExportOVA, v1beta1.ExportOCI} {
		if _, _, err := b.source.work(ctx, b.mover, exportTask(format)); err != nil {
			return 0, err
		}
		if err := os.Rename(b.source.path(transfer.ResultFolder, string(format)), filepath.Join(b.folder, string(format))); err != nil {
			return 0, err
		}
		task := &transfer.Task{
			Stage: transfer.Inspect, Source: &v1beta1.ImportSource{HTTP: &v1beta1.ImportSourceHTTP{URL: b.served + "/" + string(format)}},
			AllowedNetworks: []string{"127.0.0.0/8"}, Conversion: transfer.Conversion{Namespace: "shop", Name: "web"},
		}
		state, _, err := b.target.work(ctx, b.mover, task)
		if err != nil {
			return 0, err
		}
		d := state.Plan.Disks[0]
		task.Stage, task.Description, task.Revision = transfer.Import, state.Plan.Description, state.Plan.Revision
		task.Disks = []transfer.Disk{{Name: "root", File: d.File, Size: d.Size}}
		b.imports[format] = task
	}
	// What the codecs read.
	for _, to := range []disk.Format{disk.VMDK, disks.Layer} {
		if err := b.codec(ctx, disk.Raw, to, b.source.path(rootDisk), filepath.Join(b.folder, string(to))); err != nil {
			return 0, err
		}
	}
	return data, nil
}

// codec converts a file as the convert command does.
func (b *bench) codec(ctx context.Context, from, to disk.Format, input, output string) error {
	arguments := []string{string(from), string(to), input, output}
	if from == disks.Layer {
		arguments = append(arguments, strconv.FormatInt(8*b.Bytes, 10))
	}
	if out, err := exec.CommandContext(ctx, b.convert, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("convert %s to %s: %w\n%s", from, to, err, out)
	}
	return nil
}

// sync makes a file durable.
func sync(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// measure measures a work once, and compares what is written in the first round.
func (b *bench) measure(ctx context.Context, result *Result, i, round int) error {
	w := works[i]
	in, task, input, written := b.source, exportTask(w.format), b.source.path(rootDisk), b.source.path(transfer.ResultFolder, string(w.format))
	if !w.export {
		in, task, input, written = b.target, b.imports[w.format], filepath.Join(b.folder, string(w.from)), b.target.path(rootDisk)
		if err := in.write(rootDisk, nil); err != nil {
			return err
		}
	}
	output := filepath.Join(b.folder, "codec")
	transfers := func() error {
		_, took, err := in.work(ctx, b.mover, task)
		result.mover[i], result.memory[i] = append(result.mover[i], took.elapsed), max(result.memory[i], took.memory)
		return err
	}
	converts := func() error {
		start := time.Now()
		err := b.codec(ctx, w.from, w.to, input, output)
		if err == nil {
			// As the mover does.
			err = sync(output)
		}
		result.codec[i] = append(result.codec[i], float64(time.Since(start)))
		return err
	}
	// The first one of a pair may wait for what was written before it.
	order := []func() error{transfers, converts}
	if round%2 == 1 {
		order[0], order[1] = order[1], order[0]
	}
	for _, measure := range order {
		if err := measure(); err != nil {
			return err
		}
	}
	if round == 0 && !w.export {
		for _, made := range []string{written, output} {
			if err := exec.CommandContext(ctx, "cmp", made, b.source.path(rootDisk)).Run(); err != nil {
				return fmt.Errorf("%s differs from the disk: %w", made, err)
			}
		}
	}
	return errors.Join(os.Remove(written), os.Remove(output))
}
