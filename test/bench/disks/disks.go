package disks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/disk"
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

// cost of one conversion.
type cost struct {
	// elapsed time and processor time in nanoseconds.
	elapsed, processor float64
}

// work is a conversion that both can do.
type work struct {
	name string
	// wanted is the least ratio of qemu-img's time to Stencil's.
	wanted float64
	// qemu are arguments of qemu-img convert before the names of input and output.
	qemu []string
	// input is the name of the file to read, and format its format.
	input  string
	format disk.Format
	// output is the format that is written.
	output disk.Format
	// other is what the convert command writes for comparison, in the place of qemu-img.
	other disk.Format
}

// What the convert command reads and writes beside images.
const (
	Layer disk.Format = "layer"
	zstd  disk.Format = "zstd"
)

// dense is the name of a file that has the data of the disk without holes.
const dense = "dense"

// readPairs is how often reading is measured in a round.
const readPairs = 4

// inputs are made by qemu-img of the raw disk.
var inputs = []struct {
	name    string
	options []string
}{
	{"qcow2", []string{"-O", "qcow2"}},
	{"qcow2-zlib", []string{"-c", "-O", "qcow2"}},
	{"qcow2-zstd", []string{"-c", "-O", "qcow2", "-o", "compression_type=zstd"}},
	{"vmdk", []string{"-O", "vmdk", "-o", "subformat=monolithicSparse"}},
	{"vmdk-stream", []string{"-O", "vmdk", "-o", "subformat=streamOptimized"}},
	{"vhd", []string{"-O", "vpc", "-o", "force_size=on"}},
	{"vhdx", []string{"-O", "vhdx"}},
}

// The project's targets.
const (
	wantedWrite      = 4
	wantedRead       = 1
	wantedCompressed = 0.9
	wantedLayer      = 0.8
)

var works = []work{
	{"write VMDK streamOptimized", wantedWrite, []string{"-f", "raw", "-O", "vmdk", "-o", "subformat=streamOptimized"}, "raw", disk.Raw, disk.VMDK, ""},
	{"read raw", wantedRead, []string{"-f", "raw", "-O", "raw"}, "raw", disk.Raw, disk.Raw, ""},
	{"read qcow2", wantedRead, []string{"-f", "qcow2", "-O", "raw"}, "qcow2", disk.QCOW2, disk.Raw, ""},
	{"read VMDK monolithicSparse", wantedRead, []string{"-f", "vmdk", "-O", "raw"}, "vmdk", disk.VMDK, disk.Raw, ""},
	{"read VHD dynamic", wantedRead, []string{"-f", "vpc", "-O", "raw"}, "vhd", disk.VHD, disk.Raw, ""},
	{"read VHDX dynamic", wantedRead, []string{"-f", "vhdx", "-O", "raw"}, "vhdx", disk.VHDX, disk.Raw, ""},
	{"read VMDK streamOptimized", wantedCompressed, []string{"-f", "vmdk", "-O", "raw"}, "vmdk-stream", disk.VMDK, disk.Raw, ""},
	{"read qcow2, zlib", wantedCompressed, []string{"-f", "qcow2", "-O", "raw"}, "qcow2-zlib", disk.QCOW2, disk.Raw, ""},
	{"read qcow2, zstd", wantedCompressed, []string{"-f", "qcow2", "-O", "raw"}, "qcow2-zstd", disk.QCOW2, disk.Raw, ""},
	{"write OCI layer, beside the zstd library alone", wantedLayer, nil, dense, disk.Raw, Layer, zstd},
}

// Result holds one cost per round of each work.
type Result struct {
	ours, theirs [][]cost
	// bytes of data, and of the VMDK and the layer of each.
	bytes, ourVMDK, theirVMDK, ourLayer, theirLayer int64
	qemu                                            string
}

// Run measures.
func Run(ctx context.Context, options Options) (*Result, error) {
	version, err := exec.CommandContext(ctx, "qemu-img", "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("this benchmark needs qemu-img (Debian: apt-get install --no-install-recommends qemu-utils): %w", err)
	}
	folder, err := os.MkdirTemp("", "stencil-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for disks: %w", err)
	}
	defer os.RemoveAll(folder)
	result := &Result{ours: make([][]cost, len(works)), theirs: make([][]cost, len(works)), qemu: firstLine(version)}
	options.Progress("disks: making images of %d MiB of data", options.Bytes>>20)
	if _, err := BuildConvert(ctx, options.Module, folder); err != nil {
		return nil, err
	}
	raw := filepath.Join(folder, "raw")
	if result.bytes, err = MakeDisk(raw, options.Bytes); err != nil {
		return nil, err
	}
	for _, input := range inputs {
		if err := qemu(ctx, append(append([]string{"convert", "-f", "raw"}, input.options...), raw, filepath.Join(folder, input.name))...); err != nil {
			return nil, err
		}
	}
	if err := copyData(filepath.Join(folder, dense), raw, result.bytes); err != nil {
		return nil, err
	}
	for round := range options.Rounds {
		options.Progress("disks: round %d of %d", round+1, options.Rounds)
		for i, w := range works {
			// These are short, so that a disturbance is longer than a pair.
			pairs := 1
			if w.output == disk.Raw || w.other != "" {
				pairs = readPairs
			}
			for pair := range pairs {
				if err := result.measure(ctx, i, round*pairs+pair, w, folder); err != nil {
					return nil, fmt.Errorf("%s: %w", w.name, err)
				}
			}
		}
	}
	return result, nil
}

// BuildConvert builds the convert command of a module into a folder, and returns its path.
func BuildConvert(ctx context.Context, module, folder string) (string, error) {
	path := filepath.Join(folder, "convert")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./bench/disks/convert")
	build.Dir = module
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the convert command: %w\n%s", err, output)
	}
	return path, nil
}

func firstLine(b []byte) string {
	for i, c := range b {
		if c == '\n' {
			return string(b[:i])
		}
	}
	return string(b)
}

func qemu(ctx context.Context, arguments ...string) error { return run(ctx, "qemu-img", arguments...) }

func run(ctx context.Context, program string, arguments ...string) error {
	if output, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", filepath.Base(program), arguments, err, output)
	}
	return nil
}

// errFull ends making the disk.
var errFull = errors.New("the disk is full")

// MakeDisk writes the files of the Go toolchain, programs and text, as a file system would. The disk is eight times as large as its data, whose size it
// returns.
func MakeDisk(path string, bytes int64) (int64, error) {
	out, err := os.Create(path)
	if err != nil {
		return 0, fmt.Errorf("making the disk: %w", err)
	}
	defer out.Close()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return 0, fmt.Errorf("finding the Go toolchain: %w", err)
	}
	const block = 4096
	offset := int64(0)
	err = filepath.WalkDir(strings.TrimSpace(string(root)), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		n, err := io.Copy(io.NewOffsetWriter(out, offset), io.LimitReader(in, bytes-offset))
		if offset += (n + block - 1) / block * block; err == nil && offset >= bytes {
			err = errFull
		}
		return err
	})
	if err != nil && !errors.Is(err, errFull) {
		return 0, fmt.Errorf("making the disk: %w", err)
	}
	return offset, out.Truncate(8 * bytes)
}

// copyData copies the first bytes of a file.
func copyData(to, from string, bytes int64) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("reading the disk: %w", err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("copying the data of the disk: %w", err)
	}
	_, err = io.CopyN(out, in, bytes)
	return errors.Join(err, out.Close())
}

func (r *Result) measure(ctx context.Context, index, pair int, w work, folder string) error {
	input, ours, theirs := filepath.Join(folder, w.input), filepath.Join(folder, "ours"), filepath.Join(folder, "theirs")
	var own, other cost
	measureOwn := func() (err error) {
		own, err = timed(func() error {
			return run(ctx, filepath.Join(folder, "convert"), string(w.format), string(w.output), input, ours)
		})
		return err
	}
	measureOther := func() (err error) {
		other, err = timed(func() error {
			if w.other != "" {
				return run(ctx, filepath.Join(folder, "convert"), string(w.format), string(w.other), input, theirs)
			}
			return qemu(ctx, append(append([]string{"convert"}, w.qemu...), input, theirs)...)
		})
		return err
	}
	// The first one of a pair may wait for what was written before it.
	order := []func() error{measureOwn, measureOther}
	if pair%2 == 1 {
		slices.Reverse(order)
	}
	for _, measure := range order {
		if err := measure(); err != nil {
			return err
		}
	}
	r.ours[index], r.theirs[index] = append(r.ours[index], own), append(r.theirs[index], other)
	if w.output == disk.VMDK {
		var err error
		if r.ourVMDK, r.theirVMDK, err = sizes(ours, theirs); err != nil {
			return err
		}
	}
	if w.output == Layer {
		var err error
		if r.ourLayer, r.theirLayer, err = sizes(ours, theirs); err != nil {
			return err
		}
	} else if pair == 0 {
		if err := qemu(ctx, "compare", "-f", string(w.output), "-F", "raw", ours, filepath.Join(folder, "raw")); err != nil {
			return err
		}
	}
	return errors.Join(os.Remove(ours), os.Remove(theirs))
}

func sizes(a, b string) (int64, int64, error) {
	first, err := os.Stat(a)
	if err != nil {
		return 0, 0, err
	}
	second, err := os.Stat(b)
	if err != nil {
		return 0, 0, err
	}
	return first.Size(), second.Size(), nil
}

// timed measures the processor time of child processes.
func timed(work func() error) (cost, error) {
	before, err := children()
	if err != nil {
		return cost{}, err
	}
	start := time.Now()
	if err := work(); err != nil {
		return cost{}, err
	}
	elapsed := time.Since(start)
	after, err := children()
	return cost{elapsed: float64(elapsed), processor: after - before}, err
}

// children returns the processor time of all child processes that have ended, in nanoseconds.
func children() (float64, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0, fmt.Errorf("reading the processor time: %w", err)
	}
	return float64(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
