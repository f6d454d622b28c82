package policy

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/reports"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/policies/proof"
)

// proved is the JSON and YAML output of prove.
type proved struct {
	Proofs []provenPair `json:"proofs"`
	// NotApproved are the templates that no approval approves.
	NotApproved []string `json:"notApproved,omitempty"`
	// Missing are the objects that could not be read.
	Missing []string `json:"missing,omitempty"`
}

// provenPair is the result for a template and an approval.
type provenPair struct {
	Template  string `json:"template"`
	File      string `json:"file,omitempty"`
	Approval  string `json:"approval,omitempty"`
	Namespace string `json:"namespace"`
	proof.Proof
	// NotAsked are the policies that do not match the VirtualMachines.
	NotAsked []string `json:"notAsked,omitempty"`
}

func (one *provenPair) title() string {
	text := "template " + one.Template
	if one.Approval != "" {
		text += ", approval " + one.Approval
	}
	return text + ", namespace " + one.Namespace
}

// effects are what policies do to a VirtualMachine that rule deny finds something in.
var effects = map[policyset.Enforcement]struct{ words, level string }{
	policyset.EnforcementDeny:  {"denied", reports.Error},
	policyset.EnforcementWarn:  {"warned about", reports.Warning},
	policyset.EnforcementAudit: {"recorded", reports.Note},
}

// sentence describes a counterexample, or a failure.
func (one *provenPair) sentence(r *proof.Result) string {
	if r.Example == nil {
		return r.Reason
	}
	what := "the VM of the defaults"
	if values := r.Example.Values; len(values) > 0 {
		what = assignments(values[:1])
		if len(values) > 1 {
			what += " with " + assignments(values[1:])
		}
	}
	effect := "is " + effects[r.Enforcement].words
	switch {
	case r.Status == proof.Failed && one.Approval != "":
		effect = "is approved and cannot be evaluated"
	case r.Status == proof.Failed:
		effect = "cannot be evaluated"
	case one.Approval != "":
		effect = "is approved and " + effects[r.Enforcement].words
	}
	return fmt.Sprintf("%s %s: %s", what, effect, strings.Join(r.Example.Messages, "; "))
}

func assignments(values []proof.Value) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, v.Parameter+"="+v.Value)
	}
	return strings.Join(texts, ", ")
}

// counts describes what was tried.
func counts(r *proof.Result) string {
	text := cli.Count(int(min(r.Combinations, 1<<62)), "combination of values", "combinations of values") //nolint:gosec // it is limited
	if uint64(r.Approved) != r.Combinations {                                                             //nolint:gosec // not negative
		text += fmt.Sprintf(", %d allowed", r.Approved)
	}
	text += ", " + cli.Count(r.Distinct, "different VM", "different VMs")
	if r.Denied > 0 {
		text += fmt.Sprintf(", %d violate it", r.Denied)
	}
	if r.Failures > 0 {
		text += fmt.Sprintf(", %d cannot be evaluated", r.Failures)
	}
	return text
}

// print writes a result as text.
func (one *provenPair) print(streams cli.Streams) {
	fmt.Fprintf(streams.Out, "%s\n", streams.Paint(cli.Bold, one.title()))
	for i := range one.Policies {
		r := &one.Policies[i]
		style := cli.Red
		switch {
		case r.Status == proof.Holds:
			style = cli.Green
		case r.Status == proof.Undecided || r.Enforcement != policyset.EnforcementDeny:
			style = cli.Yellow
		}
		text := counts(r)
		if r.Status == proof.Undecided && r.Approved == 0 {
			text = r.Reason
		}
		fmt.Fprintf(streams.Out, "  %s  %s: %s\n", streams.Paint(style, fmt.Sprintf("%-14s", r.Status)), r.Policy, text)
		line := func(format string, arguments ...any) {
			fmt.Fprintf(streams.Out, "                  %s\n", fmt.Sprintf(format, arguments...))
		}
		if r.Example != nil {
			line("%s", one.sentence(r))
		}
		if r.Reason != "" && r.Reason != text {
			line("%s", r.Reason)
		}
		infinite := false
		for _, h := range r.Held {
			if value := assignments([]proof.Value{h.Value}); h.Given {
				line("only %s was tried: %s", value, h.Reason)
			} else {
				line("not finite: %s (%s); only %s was tried", h.Parameter, h.Reason, value)
				infinite = true
			}
		}
		if infinite {
			line("to decide all values, list them: with enum in the template, or with allowed in the approval")
		}
		if len(r.Unread) > 0 {
			line("values of what it does not read were not combined: %s", strings.Join(r.Unread, ", "))
		}
		if len(r.Reads) > 0 {
			line("it reads what was the same for all: %s", strings.Join(r.Reads, ", "))
		}
	}
	if len(one.Never) > 0 {
		var never []string
		for _, v := range one.Never {
			never = append(never, assignments([]proof.Value{v}))
		}
		fmt.Fprintf(streams.Out, "  %s with %s every VM is denied\n", streams.Paint(cli.Red, "never          "), strings.Join(never, ", or "))
	}
	if len(one.NotAsked) > 0 {
		fmt.Fprintf(streams.Out, "  %s\n", streams.Paint(cli.Faint, "not about these VMs: "+strings.Join(one.NotAsked, ", ")))
	}
}

func (p *proving) print(found *proved) error {
	for _, missing := range found.Missing {
		fmt.Fprintf(p.streams.Err, "%s %s\n", p.streams.Paint(cli.Yellow, "not read:"), missing)
	}
	var err error
	switch {
	case p.format.Is(cli.SARIF):
		err = p.format.Write(p.streams.Out, found.sarif())
	case p.format.Is(cli.JUnit):
		err = cli.Internal(reports.WriteJUnit(p.streams.Out, found.junit()))
	case p.format.Is(cli.Table):
		for i := range found.Proofs {
			found.Proofs[i].print(p.streams)
		}
		if len(found.NotApproved) > 0 {
			fmt.Fprintf(p.streams.Out, "not approved: %s\n", strings.Join(found.NotApproved, ", "))
		}
	default:
		err = p.format.Write(p.streams.Out, found)
	}
	if err == nil {
		err = found.end()
	}
	return err
}

// end returns the error with which the command ends.
func (found *proved) end() error {
	var err error
	for i := range found.Proofs {
		for j := range found.Proofs[i].Policies {
			switch r := &found.Proofs[i].Policies[j]; {
			case r.Status == proof.Undecided:
				err = cli.ErrUndecided
			case r.Status != proof.Holds && r.Enforcement == policyset.EnforcementDeny:
				return cli.ErrFindings
			}
		}
	}
	return err
}

// sarif has the counterexamples and failures of all templates, by policy.
func (found *proved) sarif() *reports.Sarif {
	var all []reports.Finding
	for i := range found.Proofs {
		one := &found.Proofs[i]
		for j := range one.Policies {
			r := &one.Policies[j]
			level := effects[r.Enforcement].level
			switch r.Status {
			case proof.Holds:
				continue
			case proof.Undecided:
				level = reports.Warning
			}
			all = append(all, reports.Finding{Rule: r.Policy, Level: level, Message: one.sentence(r), File: one.File, About: one.title()})
		}
	}
	return reports.SARIF(nil, all)
}

// junit has a suite for each template and approval, with a case for each policy.
func (found *proved) junit() []reports.Suite {
	var suites []reports.Suite
	for i := range found.Proofs {
		one := &found.Proofs[i]
		s := reports.Suite{Name: one.title(), File: one.File}
		for j := range one.Policies {
			r := &one.Policies[j]
			c := reports.Case{Name: r.Policy, Class: one.Template, File: one.File}
			switch {
			case r.Status == proof.Undecided || r.Status == proof.Failed:
				c.Error = one.sentence(r)
			case r.Status == proof.Counterexample && r.Enforcement == policyset.EnforcementDeny:
				c.Failure = one.sentence(r)
			}
			s.Cases = append(s.Cases, c)
		}
		suites = append(suites, s)
	}
	return suites
}
