// Command boot starts a VirtualMachine with its defaults, which it reads as JSON from the standard input, and prints in one line what its guest sees. It
// fails if that is not what is stored. The demo runs it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/guest"
)

func main() {
	guest.Main()
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "boot:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stored := &virtv1.VirtualMachine{}
	if err := json.NewDecoder(in).Decode(stored); err != nil {
		return fmt.Errorf("reading the VirtualMachine: %w", err)
	}
	programs, err := guest.Find()
	if err != nil {
		return err
	}
	seen, err := programs.Run(ctx, guest.Domain{VM: stored})
	if err != nil {
		return err
	}
	if differences := seen.Differences(stored); len(differences) > 0 {
		return errors.New(strings.Join(differences, "\n"))
	}
	fmt.Fprintf(out, "the guest sees what is stored: UUID %s, %d sockets, %d cores, %d processors, %d MiB of memory, %d PCI devices at their addresses, and the same ones when a disk is plugged in\n",
		seen.UUID, seen.Packages, seen.Cores, seen.CPUs, seen.Memory>>20, len(seen.Before))
	return nil
}
