package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// Create writes a new file, which must not exist. It writes beside it first, so that no half of one has its name.
func Create(path string, write func(io.Writer) error) (err error) {
	return CreateFile(path, func(file *os.File) error {
		buffered := bufio.NewWriterSize(file, 1<<20)
		if err := write(buffered); err != nil {
			return err
		}
		return buffered.Flush()
	})
}

// CreateFile is Create for what writes at several places of the file.
func CreateFile(path string, write func(*os.File) error) (err error) {
	if err := Absent(path); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	if err = write(file); err == nil {
		err = file.Chmod(0o644)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return cli.Internal(err)
	}
	// Link, and not Rename: it fails if the file exists by now.
	if err := os.Link(file.Name(), path); err != nil {
		return cli.Internal(err)
	}
	return nil
}

// Absent rejects the path of a file that exists.
func Absent(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return cli.Usage(fmt.Errorf("%s exists", path))
	}
	return nil
}

// Interruptible returns a reader that ends with a context.
func Interruptible(ctx context.Context, from io.Reader) io.Reader { return &interruptible{ctx, from} }

type interruptible struct {
	ctx  context.Context
	from io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.from.Read(p)
}
