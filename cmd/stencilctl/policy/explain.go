package policy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/offline"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/rego"
)

// explanation is the result of the rules of one policy for one object. Its JSON form is output.
type explanation struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Operation string   `json:"operation"`
	Policy    string   `json:"policy"`
	File      string   `json:"file"`
	Error     string   `json:"error,omitempty"`
	Rules     []rule   `json:"rules"`
	Notes     []string `json:"notes,omitempty"`
}

// rule is the result of one rule.
type rule struct {
	Entry    string         `json:"entry"`
	Row      int            `json:"row"`
	Line     string         `json:"line"`
	Fired    bool           `json:"fired"`
	Findings []rego.Finding `json:"findings,omitempty"`
	// Stopped is the furthest expression that was not true.
	Stopped *stop `json:"stopped,omitempty"`
}

type stop struct {
	Row        int    `json:"row"`
	Column     int    `json:"column"`
	Expression string `json:"expression"`
}

func newExplain(streams cli.Streams) *cobra.Command {
	var files sources
	var requests requests
	format := cli.NewFormat(cli.Table, cli.JSON, cli.YAML)
	command := &cobra.Command{
		Use:   "explain -f FILE -p FILE...",
		Short: "Show which rules of policies matched an object, and where the others stopped",
		Long: `Show which rules of policies matched an object, and where the others stopped.

All policies are evaluated, also those that do not select the object with match. Requests are made from files as in eval.`,
		Example: `  stencilctl policy explain -f vm.yaml -p policy.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx := command.Context()
			reader, err := files.reader(streams)
			if err != nil {
				return err
			}
			fixture, err := requests.fixture(reader)
			if err != nil {
				return err
			}
			policies, err := reader.Policies(requests.policies)
			if err != nil {
				return err
			}
			engine, err := newEngine(ctx, streams, policies)
			if err != nil {
				return err
			}
			all := []explanation{}
			err = requests.each(ctx, fixture, func(c *offline.Case) error {
				found, err := engine.explain(ctx, c, fixture, policies)
				all = append(all, found...)
				return err
			})
			if err != nil {
				return err
			}
			if !format.Is(cli.Table) {
				return format.Write(streams.Out, all)
			}
			for i := range all {
				all[i].print(streams)
			}
			return nil
		},
	}
	files.register(command)
	requests.register(command)
	format.Register(command, "output", "o")
	return command
}

func (e *engine) explain(ctx context.Context, c *offline.Case, fixture *offline.Fixture, policies []*source.Policy) ([]explanation, error) {
	for _, err := range c.Resolve(ctx, fixture) {
		c.Notes = append(c.Notes, err.Error())
	}
	input, err := rego.NewInput(c.Document())
	if err != nil {
		return nil, cli.Usage(err)
	}
	var all []explanation
	for _, policy := range policies {
		one := explanation{
			Kind: c.Request.Kind, Namespace: c.Request.Namespace, Name: c.Request.Name, Operation: c.Request.Operation,
			Policy: policy.Name(), File: policy.File, Rules: []rule{}, Notes: c.Notes,
		}
		found, err := e.compiled[policy.Name()].Explain(ctx, input)
		if err != nil {
			one.Error = err.Error()
		}
		for _, each := range found.Rules {
			row, _, _ := policy.Locate(each.Row, 0)
			result := rule{Entry: each.Entry, Row: row, Line: each.Line, Fired: each.Fired, Findings: each.Findings}
			if !each.Fired && each.StoppedRow > 0 {
				row, column, _ := policy.Locate(each.StoppedRow, each.StoppedColumn)
				result.Stopped = &stop{Row: row, Column: column, Expression: each.StoppedAt}
			}
			one.Rules = append(one.Rules, result)
		}
		all = append(all, one)
	}
	return all, nil
}

func (x *explanation) print(streams cli.Streams) {
	out := streams.Out
	v := result{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}
	fmt.Fprintf(out, "%s (%s) and policy %s in %s\n", streams.Paint(cli.Bold, v.object()), x.Operation, streams.Paint(cli.Bold, x.Policy), x.File)
	for _, note := range x.Notes {
		fmt.Fprintf(out, "  %s %s\n", streams.Paint(cli.Faint, "note"), note)
	}
	if x.Error != "" {
		fmt.Fprintf(out, "  %s %s\n", streams.Paint(cli.Red, "failed"), x.Error)
	}
	for _, r := range x.Rules {
		if !r.Fired {
			fmt.Fprintf(out, "  %s %5d | %s\n", streams.Paint(cli.Faint, "no   "), r.Row, r.Line)
			if r.Stopped != nil {
				fmt.Fprintf(out, "        %5d | stopped here: %s\n", r.Stopped.Row, r.Stopped.Expression)
			}
			continue
		}
		style := cli.Red
		if r.Entry == "warn" {
			style = cli.Yellow
		}
		fmt.Fprintf(out, "  %s %5d | %s\n", streams.Paint(style, "fired"), r.Row, r.Line)
		for _, found := range r.Findings {
			fmt.Fprintf(out, "              = %s\n", found.Text())
		}
	}
}
