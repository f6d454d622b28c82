package rego

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// clusterTerm is the document in data that holds the values of Definition.Data.
var clusterTerm = ast.StringTerm("cluster")

// Reference is a value of the cluster that a policy declares, and reads as data.cluster.NAME.
type Reference struct {
	Name string
	// ConfigMap and Key are the ConfigMap that has the value, in the namespace where Stencil is installed, and its key.
	ConfigMap, Key string
	// VirtualMachines are the VirtualMachines that are counted in the namespace of the object that is evaluated; nil for another value. A policy without
	// it has the digest that it had before there were any.
	VirtualMachines *VirtualMachines `json:",omitempty"`
	// ResourceQuota is the name of a ResourceQuota in the namespace of the object that is evaluated; empty for another value.
	ResourceQuota string `json:",omitempty"`
}

// VirtualMachines selects VirtualMachines.
type VirtualMachines struct {
	// Selector is a label selector in the syntax of the Kubernetes API, empty for all.
	Selector string
}

// PerObject reports whether the value depends on the object that is evaluated.
func (r Reference) PerObject() bool { return r.VirtualMachines != nil || r.ResourceQuota != "" }

// schema returns the schema of the value, as in Definition.Schema.
func (r Reference) schema() map[string]any {
	switch {
	case r.VirtualMachines != nil:
		number := map[string]any{"type": "integer"}
		return map[string]any{"type": "object", "properties": map[string]any{"count": number, "cpus": number, "memory": number, "unknown": number}}
	case r.ResourceQuota != "":
		quantities := map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
		return map[string]any{"type": "object", "properties": map[string]any{"hard": quantities, "used": quantities}}
	}
	return map[string]any{}
}

// ObjectKey identifies the object that a policy evaluates.
type ObjectKey struct {
	// Kind is the kind in the request.
	Kind, Namespace, Name string
}

// Source returns a value that depends on the object that is evaluated. It must be comparable and safe for concurrent use.
type Source interface {
	// Value returns the present value. The error is the reason why there is none, for users.
	Value(of ObjectKey) (*Value, error)
}

// Value is the value of a Reference. It is immutable and safe for concurrent use.
type Value struct {
	term   *ast.Term
	weight int
	json   []byte
	digest string
}

// NewValue converts a JSON value, as encoding/json decodes it into any.
func NewValue(value any) (*Value, error) {
	var c converter
	term, err := c.value(value, 0, wholeDocument)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding a value: %w", err)
	}
	// encoding/json sorts the keys of maps.
	sum := sha256.Sum256(text)
	return &Value{term: term, weight: c.weight, json: text, digest: "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// DecodeValue converts a value in JSON, with its numbers as they are written.
func DecodeValue(raw []byte) (*Value, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return NewValue(value)
}

// JSON is the value as JSON with sorted keys. It must not be modified.
func (v *Value) JSON() []byte { return v.json }

// Digest is "sha256:" and the digest of JSON.
func (v *Value) Digest() string { return v.digest }

// Binding is the value of one reference, or the reason why it has none.
type Binding struct {
	Name string
	// Value is nil if there is no value. Then Missing is the reason, and what to do.
	Value   *Value
	Missing string
	// Source has the value if it depends on the object that is evaluated, see Policy.For; Value and Missing are empty then.
	Source Source
}

// Equal reports whether two bindings have equal values, or lack them for the same reason.
func (b Binding) Equal(other Binding) bool {
	if b.Name != other.Name || b.Missing != other.Missing || b.Source != other.Source || (b.Value == nil) != (other.Value == nil) {
		return false
	}
	return b.Value == nil || b.Value.digest == other.Value.digest
}

// DataError is the error of an evaluation without a declared value.
type DataError struct{ Binding }

func (e *DataError) Error() string {
	return fmt.Sprintf("data.cluster.%s has no value: %s", e.Name, e.Missing)
}

// References are the values that the policy declares. They must not be modified.
func (p *Policy) References() []Reference { return p.definition.Data }

// Data are the values of the references, in the same order. They must not be modified.
func (p *Policy) Data() []Binding { return p.data }

// WithData returns the policy with values for its references. A reference without one has no value: its evaluations fail with a *DataError. Values
// that the policy does not declare are ignored.
func (p *Policy) WithData(values []Binding) *Policy {
	if len(p.definition.Data) == 0 {
		return p
	}
	other := *p
	other.setData(values)
	return &other
}

// For returns the policy with the values that depend on the object of an input, the same policy if it has none.
func (p *Policy) For(in *Input) *Policy {
	if !slices.ContainsFunc(p.data, func(b Binding) bool { return b.Source != nil }) {
		return p
	}
	other := *p
	other.data, other.cluster = slices.Clone(p.data), ast.NewObject()
	for i := range other.data {
		bound := &other.data[i]
		if bound.Source != nil {
			value, err := bound.Source.Value(in.of)
			if *bound = (Binding{Name: bound.Name, Value: value}); err != nil {
				bound.Value, bound.Missing = nil, err.Error()
			} else {
				other.dataWeight += value.weight
			}
		}
		if bound.Value != nil {
			other.cluster.Insert(ast.StringTerm(bound.Name), bound.Value.term)
		}
	}
	return &other
}

// setData sets the values of the references, and what depends on them alone.
func (p *Policy) setData(values []Binding) {
	p.data, p.cluster, p.dataWeight = nil, ast.NewObject(), 0
	for _, reference := range p.definition.Data {
		bound := Binding{Name: reference.Name, Missing: "none was given"}
		if i := slices.IndexFunc(values, func(b Binding) bool { return b.Name == reference.Name }); i >= 0 {
			bound = values[i]
		}
		p.data = append(p.data, bound)
		if bound.Value != nil {
			p.cluster.Insert(ast.StringTerm(reference.Name), bound.Value.term)
			p.dataWeight += bound.Value.weight
		}
	}
	p.fold()
}

// dataError returns why the policy cannot be evaluated for lack of a value; nil if it has all.
func (p *Policy) dataError() error {
	for _, bound := range p.data {
		if bound.Value == nil {
			if bound.Source != nil {
				bound.Missing = "it depends on the object that is evaluated"
			}
			return &DataError{bound}
		}
	}
	return nil
}

// referenceNames returns the names of the values that a policy declares; nil if it declares none.
func referenceNames(d Definition) map[string]bool {
	if len(d.Data) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, reference := range d.Data {
		names[reference.Name] = true
	}
	return names
}

// perObjectSchemas returns the schemas of the values that depend on the object that is evaluated, by name.
func perObjectSchemas(d Definition) map[string]map[string]any {
	schemas := map[string]map[string]any{}
	for _, reference := range d.Data {
		if reference.PerObject() {
			schemas[reference.Name] = reference.schema()
		}
	}
	return schemas
}
