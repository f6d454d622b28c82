package rego

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// Severity is how bad a violation of a policy is.
type Severity string

// The severities, least first.
const (
	SeverityLow      Severity = "low"
	SeverityMedium   Severity = "medium"
	SeverityHigh     Severity = "high"
	SeverityCritical Severity = "critical"
)

// Metadata is the description of a policy in its METADATA annotations of package scope.
type Metadata struct {
	Title       string
	Description string
	// Severity is custom.severity, SeverityMedium when it is not given.
	Severity Severity
}

// Policy is a compiled policy. It is immutable and safe for concurrent use.
type Policy struct {
	definition Definition
	digest     string
	program    *program
	parameters ast.Value
	weight     int // of the parameters
	// data are the values of the references, cluster those that exist, by name, and dataWeight their weight.
	data       []Binding
	cluster    ast.Object
	dataWeight int
	// constants are the values of rules that depend on the parameters and the data alone; nil for
	// those that are undefined.
	constants map[ast.String]*ast.Term
	patterns  *sandbox.Patterns
}

// Name is the name in the definition.
func (p *Policy) Name() string { return p.definition.Name }

// Digest is "sha256:" and the digest of source, parameters, schema, kinds and references, without the values of these.
func (p *Policy) Digest() string { return p.digest }

// Metadata returns the description of the policy.
func (p *Policy) Metadata() Metadata { return p.program.metadata }

// WithParameters returns the policy with other parameters, which are checked like in Compile: the error is a *CompileError. Its source is not
// compiled again.
func (p *Policy) WithParameters(parameters map[string]any) (*Policy, error) {
	d := p.definition
	d.Parameters = parameters
	completed, problems := checkParameters(d)
	if len(problems) > 0 {
		return nil, &CompileError{problems}
	}
	other := *p
	if err := other.setParameters(d, completed); err != nil {
		return nil, err
	}
	return &other, nil
}

// setParameters gives the policy the parameters of a definition, completed with the
// defaults of its schema.
func (p *Policy) setParameters(d Definition, completed map[string]any) error {
	text, err := json.Marshal(struct {
		Source             string
		Parameters, Schema map[string]any
		Kinds              []string
		// A policy without references has the digest that it had before there were any.
		Data []Reference `json:",omitempty"`
	}{d.Source, d.Parameters, d.Schema, d.Kinds, d.Data})
	if err != nil {
		return fmt.Errorf("policy %s: %w", d.Name, err)
	}
	sum := sha256.Sum256(text)
	p.digest = "sha256:" + hex.EncodeToString(sum[:])
	p.definition = d
	var c converter
	value, err := c.value(completed, 0, wholeDocument)
	if err != nil {
		return &CompileError{[]Problem{{Code: CodeParameters, Field: parametersPath.String(), Message: err.Error()}}}
	}
	p.parameters, p.weight = value.Value, c.weight
	p.setData(p.data)
	return nil
}
