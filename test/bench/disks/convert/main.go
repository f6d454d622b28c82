// Command convert writes a disk as VMDK or raw, as qemu-img convert does, so that both are measured as processes. It also writes the layer of an OCI artifact, and what the
// zstd library alone makes of a file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/formats"
	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/disk/vmdk"
)

func main() {
	var size int64
	if len(os.Args) == 6 {
		size, _ = strconv.ParseInt(os.Args[5], 10, 64)
	}
	if len(os.Args) < 5 || len(os.Args) == 6 && size < 1 {
		fmt.Fprintln(os.Stderr, "usage: convert FORMAT vmdk|raw|layer|zstd INPUT OUTPUT, or convert layer raw INPUT OUTPUT SIZE")
		os.Exit(2)
	}
	if err := convert(context.Background(), disk.Format(os.Args[1]), disk.Format(os.Args[2]), os.Args[3], os.Args[4], size); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

func convert(ctx context.Context, from, to disk.Format, input, output string, size int64) error {
	in, err := os.Open(input)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if from == "layer" {
		return expand(ctx, in, output, size)
	}
	image, err := formats.Open(in, info.Size(), from)
	if err != nil {
		return err
	}
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	switch to {
	case disk.Raw:
		return errors.Join(disk.WriteRaw(ctx, out, image, disk.Options{}), out.Close())
	case "layer":
		return errors.Join(layer(ctx, out, image), out.Close())
	case "zstd":
		return errors.Join(bare(out, in), out.Close())
	}
	encoder, err := vmdk.NewEncoder(image, vmdk.EncodeOptions{})
	if err != nil {
		return errors.Join(err, out.Close())
	}
	_, err = encoder.Write(ctx, out)
	return errors.Join(err, out.Close())
}

// layer writes the layer of an OCI artifact.
func layer(ctx context.Context, out io.Writer, image disk.Image) error {
	encoder, err := rawzstd.NewEncoder(image, disk.Options{})
	if err != nil {
		return err
	}
	_, err = encoder.Write(ctx, out)
	return err
}

// expand writes the disk of a layer.
func expand(ctx context.Context, in io.Reader, output string, size int64) error {
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	return errors.Join(rawzstd.WriteRaw(ctx, out, in, size, nil), out.Close())
}

// bare compresses a file with the library and its defaults.
func bare(out io.Writer, in io.Reader) error {
	encoder, err := zstd.NewWriter(out)
	if err != nil {
		return err
	}
	_, err = io.Copy(encoder, in)
	return errors.Join(err, encoder.Close())
}
