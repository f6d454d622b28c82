package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are the inputs and outputs of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Colour means that Out is a terminal that supports colours.
	Colour bool
	// Prompt reads user input. It is nil when In is not a terminal.
	Prompt Prompter
}

// Standard returns the streams of the process. Colours are disabled when the output is not a
// terminal, or when NO_COLOR is set (https://no-color.org).
func Standard() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Prompt: Terminal(os.Stdin),
		Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stdout.Fd())),
	}
}

// Style is a text style on a terminal.
type Style string

// The styles, by ECMA-48 (SGR).
const (
	Bold   Style = "1"
	Faint  Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Paint returns text in a style if Out shows colours.
func (s Streams) Paint(style Style, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}
