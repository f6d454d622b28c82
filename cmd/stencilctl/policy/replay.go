package policy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

// replayed is a decision of the log that was evaluated again. Its JSON form is output.
type replayed struct {
	UID string `json:"uid,omitempty"`
	result
	// Same means that the findings equal those of the log.
	Same bool `json:"same"`
	// OnlyInLog and OnlyNow are findings that only one side has.
	OnlyInLog []string `json:"onlyInLog,omitempty"`
	OnlyNow   []string `json:"onlyNow,omitempty"`
}

// replayAll evaluates decisions of the log again.
func (e *evaluation) replayAll(ctx context.Context) error {
	if len(e.requests.policies) == 0 {
		return cli.Usage(errors.New("policies must be given (-p)"))
	}
	reader, err := e.sources.reader(e.streams)
	if err != nil {
		return err
	}
	policies, err := reader.Policies(e.requests.policies)
	if err != nil {
		return err
	}
	given, err := e.data.read(reader)
	if err != nil {
		return err
	}
	engine, err := newEngine(ctx, e.streams, policies, given)
	if err != nil {
		return err
	}
	records, err := e.records()
	if err != nil {
		return err
	}
	all := []replayed{}
	same := true
	for i := range records {
		one, err := engine.again(ctx, &records[i])
		if err != nil {
			return err
		}
		all, same = append(all, one), same && one.Same
	}
	if !e.format.Is(cli.Table) {
		err = e.format.Write(e.streams.Out, all)
	} else {
		for i := range all {
			all[i].print(e.streams)
		}
	}
	if err == nil && !same {
		return cli.ErrFindings
	}
	return err
}

func (e *evaluation) records() ([]policyinput.Record, error) {
	from := e.streams.In
	if e.decision != source.Stdin {
		opened, err := os.Open(e.decision)
		if err != nil {
			return nil, cli.Usage(err)
		}
		// The file was only read, so the error does not matter.
		defer func() { _ = opened.Close() }()
		from = opened
	}
	var records []policyinput.Record
	lines := bufio.NewReader(from)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			record, err := policyinput.DecodeRecord(line)
			if err != nil {
				return nil, cli.Usage(fmt.Errorf("%s, line %d: %w", e.decision, number, err))
			}
			records = append(records, record)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, cli.Usage(err)
		}
	}
	if len(records) == 0 {
		return nil, cli.Usage(fmt.Errorf("%s holds no decision", e.decision))
	}
	return records, nil
}

// again evaluates the policies that the log names.
func (e *engine) again(ctx context.Context, record *policyinput.Record) (replayed, error) {
	document, err := record.Document()
	if err != nil {
		return replayed{}, cli.Usage(err)
	}
	input, err := rego.NewInput(document)
	if err != nil {
		return replayed{}, cli.Usage(err)
	}
	request := document.Request
	r := replayed{UID: record.UID, result: result{
		Kind: request.Kind, Namespace: request.Namespace, Name: request.Name, Operation: request.Operation,
	}}
	var entries []policyset.Entry
	for _, logged := range record.Policies {
		i := slices.IndexFunc(e.set.Entries(), func(entry policyset.Entry) bool { return entry.Policy.Name() == logged.Name })
		if i < 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("policy %s is not among those that were given", logged.Name))
			continue
		}
		entry := e.set.Entries()[i]
		if entry.Policy.Digest() != logged.Digest {
			r.Notes = append(r.Notes, fmt.Sprintf("policy %s is another version than the one that decided: %s, then %s", logged.Name, entry.Policy.Digest(), logged.Digest))
		}
		if logged.Result.Failed() {
			r.Notes = append(r.Notes, fmt.Sprintf("policy %s had no result at the time of the log: %s", logged.Name, logged.Error))
		}
		var notes []string
		if entry.Policy, notes, err = e.withData(entry.Policy, logged.Data); err != nil {
			return replayed{}, err
		}
		r.Notes = append(r.Notes, notes...)
		// The enforcement at the time of the log entry applies.
		entry.Enforcement = logged.Enforcement
		entries = append(entries, entry)
	}
	switch {
	case len(record.Masked) == 0 && input.Digest() != record.InputDigest:
		r.Notes = append(r.Notes, "the input in the log is not the one that was evaluated: their digests differ")
	case len(record.Masked) > 0:
		r.Notes = append(r.Notes, "the log masks "+strings.Join(record.Masked, ", "))
	}
	r.take(e.evaluator.Evaluate(ctx, entries, input))
	r.compare(record)
	return r, nil
}

// withData returns the policy with the values that the log has, and notes about those of files. A value that is too long for the log is taken from the
// ConfigMap that was given.
func (e *engine) withData(policy policyset.Policy, logged []policyinput.RecordedValue) (policyset.Policy, []string, error) {
	compiled, ok := policy.(*rego.Policy)
	if !ok || len(compiled.References()) == 0 {
		return policy, nil, nil
	}
	given := compiled.Data()
	var values []rego.Binding
	var notes []string
	for _, one := range logged {
		bound, err := one.Binding()
		if err != nil {
			return nil, nil, cli.Usage(err)
		}
		if bound.Value == nil && one.Digest != "" {
			i := slices.IndexFunc(given, func(b rego.Binding) bool { return b.Name == one.Name && b.Value != nil })
			if i < 0 {
				bound.Missing += "; give its ConfigMap with --data"
			} else if bound = given[i]; bound.Value.Digest() != one.Digest {
				notes = append(notes, fmt.Sprintf("policy %s read another value of data.cluster.%s than the one given: %s, then %s", policy.Name(), one.Name, bound.Value.Digest(), one.Digest))
			}
		}
		values = append(values, bound)
	}
	return compiled.WithData(values), notes, nil
}

// notEvaluated is the prefix of the finding for a failed evaluation. Most causes are
// not in the log, so that it cannot be reproduced; a missing value of the cluster can.
const notEvaluated = "could not be evaluated: "

// compare collects findings that only the log or only this evaluation has. A finding with a
// masked message in the log matches any finding of its policy with the same action.
func (r *replayed) compare(record *policyinput.Record) {
	now := map[string]int{}
	for action, list := range map[string][]violation{"deny": r.Denials, "warn": r.Warnings, "audit": r.Audited} {
		for _, v := range list {
			now[finding(action, v.Policy, v.Message)]++
		}
	}
	var masked []string
	for _, then := range record.Findings {
		key := finding(then.Action, then.Policy, then.Message)
		switch {
		case strings.HasPrefix(then.Message, notEvaluated):
			r.Notes = append(r.Notes, fmt.Sprintf("policy %s %s", then.Policy, then.Message))
			if now[key] > 0 {
				now[key]--
			}
		case then.Message == policyinput.Masked:
			masked = append(masked, finding(then.Action, then.Policy, ""))
		case now[key] > 0:
			now[key]--
		default:
			r.OnlyInLog = append(r.OnlyInLog, key)
		}
	}
	for key, n := range now {
		for range n {
			if i := slices.IndexFunc(masked, func(prefix string) bool { return strings.HasPrefix(key, prefix) }); i >= 0 {
				masked = slices.Delete(masked, i, i+1)
				continue
			}
			r.OnlyNow = append(r.OnlyNow, key)
		}
	}
	for _, prefix := range masked {
		r.OnlyInLog = append(r.OnlyInLog, prefix+policyinput.Masked)
	}
	slices.Sort(r.OnlyInLog)
	slices.Sort(r.OnlyNow)
	r.Same = len(r.OnlyInLog) == 0 && len(r.OnlyNow) == 0
}

func finding(action, policy, message string) string { return action + " " + policy + ": " + message }

func (r *replayed) print(streams cli.Streams) {
	r.result.print(streams.Out, streams)
	if r.Same {
		fmt.Fprintf(streams.Out, "  %s\n", streams.Paint(cli.Green, "the same as in the log"))
		return
	}
	for _, key := range r.OnlyInLog {
		fmt.Fprintf(streams.Out, "  %s %s\n", streams.Paint(cli.Yellow, "only in the log:"), key)
	}
	for _, key := range r.OnlyNow {
		fmt.Fprintf(streams.Out, "  %s %s\n", streams.Paint(cli.Yellow, "only now:"), key)
	}
}
