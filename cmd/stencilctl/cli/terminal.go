package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// Prompter reads user input. Both methods return io.EOF at the end of the input, and the
// context's error when it ends while they wait.
type Prompter interface {
	// Line reads a line.
	Line(ctx context.Context) (string, error)
	// Hidden reads a line without echo. It calls ask after echo is disabled, because users may
	// type before the prompt appears.
	Hidden(ctx context.Context, ask func()) (string, error)
}

// Terminal returns the Prompter of a terminal, or nil when the file is not a terminal.
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

// Line implements Prompter. It does not read past the line, so that the rest is available to
// Hidden.
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

// Hidden implements Prompter. ReadPassword disables echo only while it reads.
func (t terminal) Hidden(ctx context.Context, ask func()) (string, error) {
	state, err := term.MakeRaw(t.descriptor)
	if err != nil {
		return "", err
	}
	// Also when the context ends during the read, which would leave the terminal without echo.
	defer func() { _ = term.Restore(t.descriptor, state) }()
	ask()
	return await(ctx, func() (string, error) {
		// An abandoned read must not read from another file that reuses the descriptor.
		defer runtime.KeepAlive(t.in)
		secret, err := term.ReadPassword(t.descriptor)
		return string(secret), err
	})
}

// await reads in the background: a read from a terminal does not support contexts.
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
