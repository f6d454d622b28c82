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
	term, err := c.value(value, 0)
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
}

// Equal reports whether two bindings have equal values, or lack them for the same reason.
func (b Binding) Equal(other Binding) bool {
	if b.Name != other.Name || b.Missing != other.Missing || (b.Value == nil) != (other.Value == nil) {
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
