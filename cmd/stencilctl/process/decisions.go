package process

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// explanation is the JSON and YAML output.
type explanation struct {
	// Allowed means that no decision denies.
	Allowed   bool               `json:"allowed"`
	Decisions []v1beta1.Decision `json:"decisions"`
}

// showDecisions prints the decisions about the VirtualMachine.
func (p *processing) showDecisions(made *result) error {
	found := explanation{Allowed: true, Decisions: []v1beta1.Decision{}}
	raw, err := json.Marshal(made.decisions)
	if err == nil && made.decisions != nil {
		err = json.Unmarshal(raw, &found.Decisions)
	}
	if err != nil {
		return cli.Cluster(fmt.Errorf("reading the decisions: %w", err))
	}
	for _, decision := range found.Decisions {
		found.Allowed = found.Allowed && decision.Decision != v1beta1.EffectDeny
	}
	if p.formatted && !p.format.Is(cli.Table) {
		err = p.format.Write(p.streams.Out, found)
	} else {
		err = p.printDecisions(found.Decisions)
	}
	if err == nil && !found.Allowed {
		err = cli.ErrFindings
	}
	return err
}

func (p *processing) printDecisions(decisions []v1beta1.Decision) error {
	if len(decisions) == 0 {
		fmt.Fprintln(p.streams.Out, "no approval, policy or other admission evaluates this VirtualMachine: it would be created")
		return nil
	}
	rows := [][]string{{"DECISION", "BY", "FIELD", "MESSAGE"}}
	for _, d := range decisions {
		rows = append(rows, []string{string(d.Decision), by(d), orNone(oneLine(d.Field)), orNone(messageOf(d))})
	}
	return cli.Columns(p.streams.Out, rows...)
}

// by returns the name of what decided.
func by(d v1beta1.Decision) string {
	switch {
	case d.Kind == "":
		return "admission"
	case d.Kind == v1beta1.DecisionKindRules:
		return oneLine(d.Policy)
	case d.Policy == "":
		return d.Kind
	default:
		return d.Kind + "/" + oneLine(d.Policy)
	}
}

func messageOf(d v1beta1.Decision) string {
	text := oneLine(d.Message)
	if d.Fix != "" {
		text += "; fix: " + oneLine(d.Fix)
	}
	return text
}

// oneLine replaces line breaks, so that text from other sources stays within its cell.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
