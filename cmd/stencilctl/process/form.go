package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
)

// field prompts the user for the value of one parameter.
type field struct {
	streams   cli.Streams
	parameter *v1beta1.Parameter
	template  *templates.Template
}

// prompt repeats the prompt until the answer is valid for the parameter. Prompts are written to
// standard error, so that the output can be piped.
func (f *field) prompt(ctx context.Context) (string, error) {
	p, w := f.parameter, f.streams.Err
	title := p.Name
	if p.DisplayName != "" && p.DisplayName != p.Name {
		title = fmt.Sprintf("%s (%s)", p.DisplayName, p.Name)
	}
	fmt.Fprintf(w, "\n%s\n", f.streams.Paint(cli.Bold, title))
	if about := strings.Join(strings.Fields(p.Description), " "); about != "" {
		fmt.Fprintf(w, "  %s\n", about)
	}
	if len(p.Enum) > 0 && !p.Sensitive {
		for i, value := range p.Enum {
			fmt.Fprintf(w, "  %d) %s\n", i+1, value)
		}
	} else if takes := templates.Constraint(p); takes != "" {
		fmt.Fprintf(w, "  %s\n", f.streams.Paint(cli.Faint, takes))
	}
	for {
		answer, err := f.read(ctx)
		if err != nil {
			fmt.Fprintln(w)
			return "", err
		}
		value := f.mean(answer)
		objection := f.template.Objection(p.Name, value)
		if value == "" {
			objection = "must not be empty"
		}
		if objection == "" {
			return value, nil
		}
		fmt.Fprintf(w, "  %s\n", f.streams.Paint(cli.Red, objection))
	}
}

func (f *field) read(ctx context.Context) (string, error) {
	ask := func() { fmt.Fprintf(f.streams.Err, "%s: ", f.parameter.Name) }
	if !f.parameter.Sensitive {
		ask()
		return f.streams.Prompt.Line(ctx)
	}
	answer, err := f.streams.Prompt.Hidden(ctx, ask)
	if err == nil {
		fmt.Fprintln(f.streams.Err) // the newline of the user is not echoed
	}
	return answer, err
}

// mean converts an answer to a value: the number of an enum value, or the first letter of true,
// false, yes or no, is accepted. Surrounding spaces are removed, except for sensitive
// parameters.
func (f *field) mean(answer string) string {
	p := f.parameter
	if p.Sensitive {
		return answer
	}
	answer = strings.TrimSpace(answer)
	switch {
	case slices.Contains(p.Enum, answer):
	case len(p.Enum) > 0:
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(p.Enum) {
			return p.Enum[n-1]
		}
	case p.Type == v1beta1.ParameterTypeBool:
		switch strings.ToLower(answer) {
		case "y", "yes", "t":
			return "true"
		case "n", "no", "f":
			return "false"
		}
	}
	return answer
}

// ended replaces io.EOF by an error with a readable message.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	return err
}
