package process

import (
	"context"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
)

// shownParameter is a parameter in the JSON and YAML output. A sensitive default is omitted.
type shownParameter struct {
	Name        string                `json:"name"`
	DisplayName string                `json:"displayName,omitempty"`
	Description string                `json:"description,omitempty"`
	Required    bool                  `json:"required"`
	Default     string                `json:"default,omitempty"`
	Generated   bool                  `json:"generated,omitempty"`
	Sensitive   bool                  `json:"sensitive,omitempty"`
	Mutable     bool                  `json:"mutable,omitempty"`
	Multiline   bool                  `json:"multiline,omitempty"`
	Type        v1beta1.ParameterType `json:"type,omitempty"`
	Enum        []string              `json:"enum,omitempty"`
	Pattern     string                `json:"pattern,omitempty"`
	Minimum     *int64                `json:"minimum,omitempty"`
	Maximum     *int64                `json:"maximum,omitempty"`
}

// printParameters prints the parameters of a template. They are only in the template itself, so
// a template of the cluster must be read.
func (p *processing) printParameters(ctx context.Context, name string) error {
	t, err := p.load(ctx, name)
	if err != nil {
		return err
	}
	declared := t.Compiled.Parameters()
	switch {
	case p.format.Is(cli.Name) && p.formatted:
		rows := make([][]string, len(declared))
		for i := range declared {
			rows[i] = []string{declared[i].Name}
		}
		return cli.Columns(p.streams.Out, rows...)
	case p.formatted && !p.format.Is(cli.Table):
		shown := make([]shownParameter, len(declared))
		for i := range declared {
			shown[i] = show(&declared[i])
		}
		return p.format.Write(p.streams.Out, shown)
	}
	rows := [][]string{{"NAME", "REQUIRED", "DEFAULT", "CONSTRAINT", "DESCRIPTION"}}
	for i := range declared {
		d := &declared[i]
		required := "no"
		if d.Required {
			required = "yes"
		}
		rows = append(rows, []string{d.Name, required, orNone(templates.Default(d)), orNone(templates.Constraint(d)), describe(d)})
	}
	return cli.Columns(p.streams.Out, rows...)
}

func show(p *v1beta1.Parameter) shownParameter {
	s := shownParameter{
		Name: p.Name, DisplayName: p.DisplayName, Description: p.Description, Required: p.Required,
		Default: p.Value, Generated: p.Generate != "" && p.Value == "", Sensitive: p.Sensitive, Mutable: p.Mutable,
		Multiline: p.Multiline, Type: p.Type, Enum: p.Enum, Pattern: p.Pattern, Minimum: p.Minimum, Maximum: p.Maximum,
	}
	if p.Sensitive {
		// The allowed values of a sensitive parameter are omitted too.
		s.Default, s.Enum = "", nil
	}
	return s
}

// describe returns the description of a parameter on one line.
func describe(p *v1beta1.Parameter) string {
	text := p.Description
	if text == "" {
		text = p.DisplayName
	}
	return strings.Join(strings.Fields(text), " ")
}
