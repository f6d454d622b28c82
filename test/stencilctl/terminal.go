package stencilctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/creack/pty"
)

// Answer is typed when the terminal shows the prompt.
type Answer struct{ Prompt, Text string }

// timeout is the timeout of a command on a terminal, answers included.
const timeout = time.Minute

// OnTerminal runs the command on a terminal, and types the answers.
func (c Command) OnTerminal(ctx context.Context, answers ...Answer) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	command := c.command(ctx)
	keyboard, err := pty.StartWithSize(command, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		return Result{}, fmt.Errorf("starting stencilctl on a terminal: %w", err)
	}
	defer keyboard.Close()
	shown, err := converse(keyboard, answers)
	if err != nil {
		// The command receives no further answers.
		_ = command.Process.Kill()
	}
	var exit *exec.ExitError
	if waited := command.Wait(); waited != nil && !errors.As(waited, &exit) {
		err = errors.Join(err, fmt.Errorf("running stencilctl: %w", waited))
	}
	// The line discipline ends lines with CR LF.
	return Result{Code: command.ProcessState.ExitCode(), Output: strings.ReplaceAll(shown, "\r\n", "\n")}, err
}

// converse reads what is shown until the terminal is closed, and types each answer when its prompt is the last thing shown.
func converse(keyboard io.ReadWriter, answers []Answer) (string, error) {
	var screen strings.Builder
	answered, buffer := 0, make([]byte, 4096)
	for {
		n, err := keyboard.Read(buffer)
		screen.Write(buffer[:n])
		for len(answers) > 0 {
			at := strings.Index(screen.String()[answered:], answers[0].Prompt)
			if at < 0 {
				break
			}
			answered += at + len(answers[0].Prompt)
			if _, err := io.WriteString(keyboard, answers[0].Text+"\n"); err != nil {
				return screen.String(), fmt.Errorf("answering %q: %w", answers[0].Prompt, err)
			}
			answers = answers[1:]
		}
		if err != nil {
			// Linux returns EIO when the last process on the terminal has ended.
			break
		}
	}
	if len(answers) > 0 {
		return screen.String(), fmt.Errorf("%q was not asked:\n%s", answers[0].Prompt, screen.String())
	}
	return screen.String(), nil
}
