// Package defaulter starts a stencil-defaulter with the libvirt and QEMU of this host, for tests that need a real one.
package defaulter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
	"github.com/vmstencil/stencil/test/product"
)

// Install describes what a host needs for a defaulter.
const Install = "the defaulter needs libvirt and QEMU: apt-get install --no-install-recommends libvirt0 libvirt-daemon-driver-qemu qemu-system-x86 qemu-system-arm"

// startLimit bounds a start, which queries the capabilities of QEMU the first time.
const startLimit = time.Minute

// imageGroup is the group of the programs in Stencil's images.
const imageGroup = 65532

// Defaulter is a stencil-defaulter that can be started, killed and started again, always
// on the same socket. It is not safe for concurrent use.
type Defaulter struct {
	folder, binary string
	process        *exec.Cmd
	ended          chan error
	log            output
}

// New prepares a folder for a stencil-defaulter, which Close removes. The program need not be built before the first Start.
func New() (*Defaulter, error) {
	// libvirt's folder should be in memory, and must be accessible to the user that libvirt runs as.
	parent := "/dev/shm"
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = os.TempDir()
	}
	folder, err := os.MkdirTemp(parent, "stencil-defaulter-")
	if err != nil {
		return nil, fmt.Errorf("making the defaulter's folder: %w", err)
	}
	d := &Defaulter{folder: folder, binary: filepath.Join(folder, "stencil-defaulter")}
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the defaulter's folder: %w", err), d.Close())
	}
	return d, nil
}

// provide copies the program to the folder, unless it exists: the user of its worker may have no permission to read the build folder.
func (d *Defaulter) provide(ctx context.Context) error {
	if _, err := os.Stat(d.binary); err == nil {
		return nil
	}
	built, err := product.Binary(ctx, "stencil-defaulter")
	if err != nil {
		return err
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return fmt.Errorf("reading stencil-defaulter: %w", err)
	}
	if err := os.WriteFile(d.binary, content, 0o755); err != nil {
		return fmt.Errorf("copying stencil-defaulter: %w", err)
	}
	return nil
}

// Socket is where it listens.
func (d *Defaulter) Socket() string { return filepath.Join(d.folder, "defaulter.sock") }

// Start starts the process and waits until it answers with the versions of libvirt and QEMU.
func (d *Defaulter) Start(ctx context.Context) error {
	if err := d.provide(ctx); err != nil {
		return err
	}
	d.process = exec.Command(d.binary, "--socket", d.Socket(), "--root", filepath.Join(d.folder, "state"))
	d.process.Stdout, d.process.Stderr = &d.log, &d.log
	d.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	d.ended = make(chan error, 1)
	go run(d.process, started, d.ended)
	if err := <-started; err != nil {
		return fmt.Errorf("starting stencil-defaulter: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		_, err := d.Environment(ctx)
		if err == nil {
			return d.open()
		}
		select {
		case ended := <-d.ended:
			d.process = nil
			return fmt.Errorf("stencil-defaulter ended: %w; %s\n%s", ended, Install, d.log.String())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("stencil-defaulter does not answer: %w; %s\n%s", err, Install, d.log.String()), d.Kill())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// run starts a process and waits for it on one thread, with which the kernel ends the process: containers end the threads on which they were started.
func run(process *exec.Cmd, started, ended chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := process.Start()
	started <- err
	if err == nil {
		ended <- process.Wait()
	}
}

// open permits the group of Stencil's images to connect, as in a pod, where the servers have the user of the defaulter.
func (d *Defaulter) open() error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := os.Chown(d.Socket(), -1, imageGroup); err != nil {
		return fmt.Errorf("opening the defaulter's socket: %w", err)
	}
	return nil
}

// Environment returns the versions that the answers depend on.
func (d *Defaulter) Environment(ctx context.Context) (*defaulting.Environment, error) {
	return client.New(d.Socket()).Environment(ctx)
}

// Kill ends the process as a failure would, and its worker with it.
func (d *Defaulter) Kill() error { return d.end(syscall.SIGKILL) }

// Close ends the process, if it runs, and removes its folder.
func (d *Defaulter) Close() error {
	return errors.Join(d.end(syscall.SIGTERM), os.RemoveAll(d.folder))
}

func (d *Defaulter) end(signal syscall.Signal) error {
	if d.process == nil {
		return nil
	}
	if err := d.process.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending stencil-defaulter: %w", err)
	}
	err := <-d.ended
	d.process = nil
	if signal == syscall.SIGKILL {
		return nil
	}
	return err
}

// output is what the process has written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

// String is what was written so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
