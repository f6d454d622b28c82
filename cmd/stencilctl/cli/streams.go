package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Colour says that Out is a terminal that shows colours.
	Colour bool
	// Prompt reads what a person types. It is nil when In is no terminal.
	Prompt Prompter
}

// Standard returns the streams of the process. Colours are left out when the output is
// not a terminal, and when NO_COLOR is set (https://no-color.org).
func Standard() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Prompt: Terminal(os.Stdin),
		Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stdout.Fd())),
	}
}

// Style is how a piece of text is shown on a terminal.
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
