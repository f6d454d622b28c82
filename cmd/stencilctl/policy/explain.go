package policy

import (
	"context"
	"fmt"
	"strconv"

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

// stop is an expression that was not true.
type stop struct {
	Row        int    `json:"row"`
	Column     int    `json:"column"`
	Expression string `json:"expression"`
	// Helpers are the rules that the expression uses.
	Helpers []helper `json:"helpers,omitempty"`
}

// helper is the result of a rule that an expression uses. Those of data.lib have no row.
type helper struct {
	Name    string   `json:"name"`
	Row     int      `json:"row,omitempty"`
	Line    string   `json:"line,omitempty"`
	Values  []string `json:"values,omitempty"`
	Stopped *stop    `json:"stopped,omitempty"`
}

func newStop(policy *source.Policy, s *rego.Stop) *stop {
	if s == nil {
		return nil
	}
	row, column, _ := policy.Locate(s.Row, s.Column)
	made := &stop{Row: row, Column: column, Expression: s.Expression}
	for _, h := range s.Helpers {
		one := helper{Name: h.Name, Line: h.Line, Values: h.Values, Stopped: newStop(policy, h.Stopped)}
		if h.Row > 0 {
			one.Row, _, _ = policy.Locate(h.Row, 0)
		}
		made.Helpers = append(made.Helpers, one)
	}
	return made
}

func newExplain(streams cli.Streams) *cobra.Command {
	var files sources
	var requests requests
	var data data
	format := cli.NewFormat(cli.Table, cli.JSON, cli.YAML)
	command := &cobra.Command{
		Use:   "explain -f FILE -p FILE...",
		Short: "Show which rules of policies matched an object, and where the others stopped",
		Long: `Show which rules of policies matched an object, and where the others stopped.

Where a rule stopped at a function or another helper, what that returned follows, or where it stopped itself. All policies are evaluated, also those that
do not select the object with match. Requests are made from files as in eval.`,
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
			given, err := data.read(reader)
			if err != nil {
				return err
			}
			engine, err := newEngine(ctx, streams, policies, given)
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
	data.register(command)
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
		found, err := e.compiled[policy.Name()].For(input).Explain(ctx, input)
		if err != nil {
			one.Error = err.Error()
		}
		for _, each := range found.Rules {
			row, _, _ := policy.Locate(each.Row, 0)
			one.Rules = append(one.Rules, rule{
				Entry: each.Entry, Row: row, Line: each.Line, Fired: each.Fired, Findings: each.Findings, Stopped: newStop(policy, each.Stopped),
			})
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
			r.Stopped.print(streams, "")
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

// print prints where a rule stopped, and why the helpers did that it uses there. Nothing if s is nil.
func (s *stop) print(streams cli.Streams, indent string) {
	if s == nil {
		return
	}
	fmt.Fprintf(streams.Out, "        %5d | %sstopped here: %s\n", s.Row, indent, s.Expression)
	indent += "  "
	for _, h := range s.Helpers {
		row := ""
		if h.Row > 0 {
			row = strconv.Itoa(h.Row)
		}
		if len(h.Values) == 0 {
			fmt.Fprintf(streams.Out, "        %5s | %s%s is undefined\n", row, indent, h.Name)
		}
		for _, value := range h.Values {
			fmt.Fprintf(streams.Out, "        %5s | %s%s is %s\n", row, indent, h.Name, value)
		}
		h.Stopped.print(streams, indent+"  ")
	}
}
