package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// Record is a decision as the decision log holds it: one JSON object, under the key
// "decision" of a log line. What is needed to decide again is in it, but for what Mask
// leaves out: where Masked is empty, the same policies come to the same findings.
type Record struct {
	// UID is the request's.
	UID string `json:"uid,omitempty"`
	// Outcome is "allowed", "warned" (allowed, and somebody was told something) or
	// "denied", by the policies alone.
	Outcome string `json:"outcome"`
	// Policies are those that were asked.
	Policies []RecordedPolicy `json:"policies"`
	// Findings are all that they found.
	Findings []RecordedFinding `json:"findings,omitempty"`
	// InputDigest is rego.Input.Digest of what the policies saw, nothing masked.
	InputDigest string `json:"inputDigest"`
	// Masked are the places in Input that differ from what the policies saw.
	Masked []string `json:"masked,omitempty"`
	// Input is what the policies saw, in the form in which they see it, but for Masked.
	Input json.RawMessage `json:"input"`
}

// RecordedPolicy is a policy that was asked.
type RecordedPolicy struct {
	Name string `json:"name"`
	// Digest is rego.Policy.Digest, which status.activeDigest of the policy tells.
	Digest      string                `json:"digest"`
	Enforcement policyset.Enforcement `json:"enforcement"`
	Outcome     policyset.Outcome     `json:"outcome"`
	// Microseconds is how long the evaluation took.
	Microseconds int64 `json:"microseconds"`
	// Error is why there is no result, as Redact leaves it.
	Error string `json:"error,omitempty"`
}

// RecordedFinding is one thing that a policy found. Message, Field and Fix are the policy's
// own words, and "***" as a whole where they hold the value of a sensitive parameter.
type RecordedFinding struct {
	Policy string `json:"policy"`
	// Action is what became of it: deny, warn or audit.
	Action string `json:"action"`
	rego.Finding
}

// Outcomes of a Record.
const (
	OutcomeAllowed = "allowed"
	OutcomeWarned  = "warned"
	OutcomeDenied  = "denied"
)

// Record makes the record of a decision about the case, for which document and input were
// made.
func (c *Case) Record(uid string, d policyset.Decision, document rego.Document, input *rego.Input) (Record, error) {
	d = copied(d)
	Redact(&d)
	masked, paths := c.Mask(document)
	raw, err := EncodeInput(masked)
	if err != nil {
		return Record{}, err
	}
	r := Record{UID: uid, Outcome: OutcomeOf(d), Policies: []RecordedPolicy{}, InputDigest: input.Digest(), Masked: paths, Input: raw}
	for _, e := range d.Evaluations {
		policy := RecordedPolicy{Name: e.Policy, Digest: e.Digest, Enforcement: e.Enforcement, Outcome: e.Outcome, Microseconds: e.Duration.Microseconds()}
		if e.Err != nil {
			policy.Error = e.Err.Error()
		}
		r.Policies = append(r.Policies, policy)
	}
	hide := c.hide()
	add := func(action string, violations []policyset.Violation) {
		for _, v := range violations {
			r.Findings = append(r.Findings, RecordedFinding{Policy: v.Policy, Action: action, Finding: rego.Finding{
				Message: hide(v.Message), Field: hide(v.Field), Fix: hide(v.Fix),
			}})
		}
	}
	add("deny", d.Denials)
	add("warn", d.Warnings)
	add("audit", d.Audited)
	return r, nil
}

// copied is a decision that can be changed.
func copied(d policyset.Decision) policyset.Decision {
	return policyset.Decision{
		Denials: slices.Clone(d.Denials), Warnings: slices.Clone(d.Warnings), Audited: slices.Clone(d.Audited), Evaluations: slices.Clone(d.Evaluations),
	}
}

// OutcomeOf sums a decision up.
func OutcomeOf(d policyset.Decision) string {
	switch {
	case len(d.Denials) > 0:
		return OutcomeDenied
	case len(d.Warnings) > 0:
		return OutcomeWarned
	default:
		return OutcomeAllowed
	}
}

// hide returns what replaces texts that hold the value of a sensitive parameter.
func (c *Case) hide() func(string) string {
	m := masker{secrets: c.secrets()}
	return func(text string) string {
		if m.secret(text) {
			return Masked
		}
		return text
	}
}

// DecodeRecord reads a Record, or a line of the manager's log that holds one.
func DecodeRecord(raw []byte) (Record, error) {
	var line struct {
		Decision *Record `json:"decision"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return Record{}, fmt.Errorf("decoding a decision: %w", err)
	}
	if line.Decision != nil {
		return *line.Decision, nil
	}
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return Record{}, fmt.Errorf("decoding a decision: %w", err)
	}
	if len(r.Input) == 0 {
		return Record{}, fmt.Errorf("decoding a decision: it holds no input")
	}
	return r, nil
}

// Document is Input in the form that rego.NewInput takes.
func (r Record) Document() (rego.Document, error) { return DecodeInput(r.Input) }

// EncodeInput returns the JSON that policies see of a document.
func EncodeInput(d rego.Document) ([]byte, error) {
	in := inputOf(d)
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encoding an input: %w", err)
	}
	return raw, nil
}

// DecodeInput reads what EncodeInput wrote. Unknown fields are errors.
func DecodeInput(raw []byte) (rego.Document, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	var in input
	if err := decoder.Decode(&in); err != nil {
		return rego.Document{}, fmt.Errorf("decoding an input: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return rego.Document{}, fmt.Errorf("decoding an input: something follows it")
	}
	return in.document(), nil
}
