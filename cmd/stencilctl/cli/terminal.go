package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// Prompter reads what a person types. Both methods return io.EOF when nothing comes any
// more, and the context's error when it ends while they wait.
type Prompter interface {
	// Line reads a line.
	Line(ctx context.Context) (string, error)
	// Hidden reads a line that is not shown. It calls ask as soon as nothing is shown any
	// more: not before, because people type before they are asked.
	Hidden(ctx context.Context, ask func()) (string, error)
}

// Terminal returns the Prompter of a terminal, and nil when the file is none.
func Terminal(in *os.File) Prompter {
	descriptor := int(in.Fd())
	if !term.IsTerminal(descriptor) {
		return nil
	}
	return terminal{in: in, descriptor: descriptor}
}

type terminal struct {
	in         *os.File
	descriptor int
}

type typed struct {
	text string
	err  error
}

// Line implements Prompter. It reads no further than the line, so that what follows is
// left for Hidden.
func (t terminal) Line(ctx context.Context) (string, error) {
	return await(ctx, func() (string, error) {
		var line []byte
		one := make([]byte, 1)
		for {
			n, err := t.in.Read(one)
			switch {
			case n == 1 && one[0] == '\n':
				return string(line), nil
			case n == 1:
				line = append(line, one[0])
			case err == nil || errors.Is(err, io.EOF):
				return "", io.EOF
			default:
				return "", err
			}
		}
	})
}

// Hidden implements Prompter. ReadPassword hides what is typed only while it reads.
func (t terminal) Hidden(ctx context.Context, ask func()) (string, error) {
	state, err := term.MakeRaw(t.descriptor)
	if err != nil {
		return "", err
	}
	// Also when the reader still waits, which would leave a terminal that shows nothing.
	defer func() { _ = term.Restore(t.descriptor, state) }()
	ask()
	return await(ctx, func() (string, error) {
		// Whoever waits for nothing any more must not read from another file.
		defer runtime.KeepAlive(t.in)
		secret, err := term.ReadPassword(t.descriptor)
		return string(secret), err
	})
}

// await reads in the background: a read from a terminal knows no context.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	done := make(chan typed, 1)
	go func() {
		text, err := read()
		done <- typed{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case answer := <-done:
		return answer.text, answer.err
	}
}
