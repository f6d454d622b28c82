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

// Record is a decision in the decision log: one JSON object, under the key "decision"
// of a log line. It contains everything that is needed to repeat the decision, except
// the values that Mask removes: if Masked is empty, the same policies return the same
// findings.
type Record struct {
	// UID is the UID of the request.
	UID string `json:"uid,omitempty"`
	// Result is "allowed", "warned" (allowed with a warning) or "denied", by the
	// policies alone.
	Result string `json:"outcome"`
	// Policies are the evaluated policies.
	Policies []RecordedPolicy `json:"policies"`
	// Findings are all findings of the policies.
	Findings []RecordedFinding `json:"findings,omitempty"`
	// InputDigest is rego.Input.Digest of the unmasked input of the policies.
	InputDigest string `json:"inputDigest"`
	// Masked are the paths in Input that differ from the input of the policies.
	Masked []string `json:"masked,omitempty"`
	// Input is the input of the policies, except for Masked.
	Input json.RawMessage `json:"input"`
}

// RecordedPolicy is an evaluated policy.
type RecordedPolicy struct {
	Name string `json:"name"`
	// Digest is rego.Policy.Digest, as in status.activeDigest of the policy.
	Digest      string                `json:"digest"`
	Enforcement policyset.Enforcement `json:"enforcement"`
	Result      policyset.Result      `json:"outcome"`
	// Microseconds is the duration of the evaluation in microseconds.
	Microseconds int64 `json:"microseconds"`
	// Data are the values of the cluster that the policy read.
	Data []RecordedValue `json:"data,omitempty"`
	// Error is the reason why there is no result, redacted by Redact.
	Error string `json:"error,omitempty"`
}

// RecordedValue is a value that a policy read as data.cluster.NAME.
type RecordedValue struct {
	Name string `json:"name"`
	// Digest is rego.Value.Digest; empty if there was no value.
	Digest string `json:"digest,omitempty"`
	// Value is empty if there was none, or if the values in the record are longer than
	// maximumData together.
	Value json.RawMessage `json:"value,omitempty"`
	// Missing is the reason why there was no value.
	Missing string `json:"missing,omitempty"`
}

// maximumData is the length of all values of the cluster in a record, as JSON.
const maximumData = 16 << 10

// Binding returns the value in the form that rego.Policy.WithData takes. One of which only
// the digest is recorded is missing.
func (v RecordedValue) Binding() (rego.Binding, error) {
	bound := rego.Binding{Name: v.Name, Missing: v.Missing}
	switch {
	case len(v.Value) > 0:
		var err error
		if bound.Value, err = rego.DecodeValue(v.Value); err != nil {
			return bound, fmt.Errorf("decoding data.cluster.%s of a decision: %w", v.Name, err)
		}
	case v.Digest != "":
		bound.Missing = "it is too long for the log, which has only its digest " + v.Digest
	}
	return bound, nil
}

// RecordedFinding is one finding of a policy. Message, Field and Fix are the text of the
// policy, or "***" if they contain the value of a sensitive parameter.
type RecordedFinding struct {
	Policy string `json:"policy"`
	// Action is the effect of the finding: deny, warn or audit.
	Action string `json:"action"`
	// Exception is the name of the PolicyException that allows the finding: then it has
	// no effect.
	Exception string `json:"exception,omitempty"`
	rego.Finding
}

// Values of Record.Result.
const (
	ResultAllowed = "allowed"
	ResultWarned  = "warned"
	ResultDenied  = "denied"
)

// Record returns the record of a decision about the case, with the document and the input
// of its evaluation.
func (c *Case) Record(uid string, d policyset.Decision, document rego.Document, input *rego.Input) (Record, error) {
	d = copied(d)
	Redact(&d)
	masked, paths := c.Mask(document)
	raw, err := EncodeInput(masked)
	if err != nil {
		return Record{}, err
	}
	r := Record{UID: uid, Result: ResultOf(d), Policies: []RecordedPolicy{}, InputDigest: input.Digest(), Masked: paths, Input: raw}
	left := maximumData
	for _, e := range d.Evaluations {
		policy := RecordedPolicy{Name: e.Policy, Digest: e.Digest, Enforcement: e.Enforcement, Result: e.Result, Microseconds: e.Duration.Microseconds()}
		if e.Err != nil {
			policy.Error = e.Err.Error()
		}
		policy.Data = recordedData(e.Data, &left)
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
	for _, e := range d.Excepted {
		add(actions[e.Enforcement], []policyset.Violation{e.Violation})
		r.Findings[len(r.Findings)-1].Exception = e.Exception.Name
	}
	return r, nil
}

// recordedData returns the values that a policy read. left is the length of values that the
// record may still hold.
func recordedData(data []rego.Binding, left *int) []RecordedValue {
	var all []RecordedValue
	for _, bound := range data {
		one := RecordedValue{Name: bound.Name, Missing: bound.Missing}
		if bound.Value != nil {
			one.Digest = bound.Value.Digest()
			if raw := bound.Value.JSON(); len(raw) <= *left {
				one.Value = raw
				*left -= len(raw)
			}
		}
		all = append(all, one)
	}
	return all
}

// actions are the values of RecordedFinding.Action.
var actions = map[policyset.Enforcement]string{
	policyset.EnforcementDeny: "deny", policyset.EnforcementWarn: "warn", policyset.EnforcementAudit: "audit",
}

// copied returns a copy of a decision that can be changed.
func copied(d policyset.Decision) policyset.Decision {
	return policyset.Decision{
		Denials: slices.Clone(d.Denials), Warnings: slices.Clone(d.Warnings), Audited: slices.Clone(d.Audited), Evaluations: slices.Clone(d.Evaluations),
		Excepted: slices.Clone(d.Excepted),
	}
}

// ResultOf returns the Result of a Record for a decision.
func ResultOf(d policyset.Decision) string {
	switch {
	case len(d.Denials) > 0:
		return ResultDenied
	case len(d.Warnings) > 0 || slices.ContainsFunc(d.Excepted, policyset.Excepted.Warns):
		return ResultWarned
	default:
		return ResultAllowed
	}
}

// hide returns a function that replaces texts which contain the value of a sensitive
// parameter.
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

// Document returns Input in the form that rego.NewInput takes.
func (r Record) Document() (rego.Document, error) { return DecodeInput(r.Input) }

// EncodeInput returns the input of policies for a document, as JSON.
func EncodeInput(d rego.Document) ([]byte, error) {
	in := inputOf(d)
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encoding an input: %w", err)
	}
	return raw, nil
}

// DecodeInput reads the result of EncodeInput. Unknown fields are errors.
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
