package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/libvirt"
	"github.com/vmstencil/stencil/defaulting/worker"
)

// workerCommand is the argument that makes the binary a worker. It is for internal use.
const workerCommand = "worker"

// parallel is how many domains a worker defines at a time.
const parallel = 2

// runWorker serves the supervisor until the input ends. Tests use faults to inject faults
// between it and libvirt.
func runWorker(ctx context.Context, arguments []string, in io.Reader, out, stderr io.Writer, faults func(worker.Libvirt) worker.Libvirt) error {
	flags := flag.NewFlagSet(workerCommand, flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "", "folder of libvirt's state")
	user := flags.Int("user", 0, "user and group to become when started as root")
	validate := flags.Bool("validate", false, "check every domain against libvirt's schema")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if err := become(*user, *root); err != nil {
		return err
	}
	session, err := libvirt.Open(*root, *validate)
	if err != nil {
		return err
	}
	facts, err := session.Facts()
	if err != nil {
		return err
	}
	served := worker.Libvirt(session)
	if faults != nil {
		served = faults(session)
	}
	return errors.Join(worker.Serve(ctx, in, out, served, facts, parallel), session.Close())
}

// become drops root privileges.
func become(user int, root string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if user == 0 {
		return errors.New("the worker must not run as root: libvirt would query the capabilities of QEMU for every VM; set --user")
	}
	if err := os.Chown(root, user, user); err != nil {
		return fmt.Errorf("giving the folder to user %d: %w", user, err)
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(user), syscall.Setuid(user)); err != nil {
		return fmt.Errorf("becoming user %d: %w", user, err)
	}
	return nil
}
