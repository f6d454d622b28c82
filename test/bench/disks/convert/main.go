// Command convert writes a disk as VMDK or raw, as qemu-img convert does, so that both are measured as processes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/formats"
	"github.com/vmstencil/stencil/disk/vmdk"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: convert FORMAT vmdk|raw INPUT OUTPUT")
		os.Exit(2)
	}
	if err := convert(context.Background(), disk.Format(os.Args[1]), disk.Format(os.Args[2]), os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

func convert(ctx context.Context, from, to disk.Format, input, output string) error {
	in, err := os.Open(input)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	image, err := formats.Open(in, info.Size(), from)
	if err != nil {
		return err
	}
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	if to == disk.Raw {
		return errors.Join(disk.WriteRaw(ctx, out, image, disk.Options{}), out.Close())
	}
	encoder, err := vmdk.NewEncoder(image, vmdk.EncodeOptions{})
	if err != nil {
		return errors.Join(err, out.Close())
	}
	_, err = encoder.Write(ctx, out)
	return errors.Join(err, out.Close())
}
