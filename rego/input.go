package rego

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// Input is one request's input in the form in which policies read it. It is
// immutable and safe for concurrent use.
type Input struct {
	term   *ast.Term
	weight int
	shared sandbox.Shared
	of     ObjectKey

	digestOnce sync.Once
	digest     string
}

// NewInput converts a document. It does not modify or retain the document's maps. The error is about values that are not JSON.
func NewInput(d Document) (*Input, error) {
	var c converter
	object, err := c.object(d.Object)
	if err != nil {
		return nil, fmt.Errorf("input.object: %w", err)
	}
	old, err := c.object(d.OldObject)
	if err != nil {
		return nil, fmt.Errorf("input.oldObject: %w", err)
	}
	instancetype, err := c.object(d.Instancetype)
	if err != nil {
		return nil, fmt.Errorf("input.instancetype: %w", err)
	}
	preference, err := c.object(d.Preference)
	if err != nil {
		return nil, fmt.Errorf("input.preference: %w", err)
	}
	objects := make([]*ast.Term, len(d.Objects))
	for i, each := range d.Objects {
		if objects[i], err = c.object(each); err != nil {
			return nil, fmt.Errorf("input.objects[%d]: %w", i, err)
		}
	}
	in := &Input{term: record(
		"request", c.request(d.Request),
		"object", object,
		"oldObject", old,
		"namespace", record(
			"name", ast.StringTerm(d.Namespace.Name),
			"labels", c.texts(d.Namespace.Labels),
			"annotations", c.texts(d.Namespace.Annotations)),
		"template", c.template(d.Template),
		"parameters", c.texts(d.Parameters),
		"instancetype", instancetype,
		"preference", preference,
		"objects", ast.ArrayTerm(objects...))}
	in.weight = c.weight
	in.of = ObjectKey{Kind: cmp.Or(d.Request.RequestKind, d.Request.Kind), Namespace: d.Request.Namespace, Name: d.Request.Name}
	return in, nil
}

// Digest is "sha256:" and the digest of the input's canonical JSON. It is
// computed on the first call.
func (i *Input) Digest() string {
	i.digestOnce.Do(func() {
		// The JSON of an AST has its keys sorted.
		sum := sha256.Sum256([]byte(i.term.Value.String()))
		i.digest = "sha256:" + hex.EncodeToString(sum[:])
	})
	return i.digest
}

func (c *converter) request(r Request) *ast.Term {
	at := ast.NullTerm()
	if !r.Time.IsZero() {
		at = ast.StringTerm(r.Time.UTC().Format(time.RFC3339))
	}
	return record(
		"operation", ast.StringTerm(r.Operation),
		"kind", ast.StringTerm(r.Kind),
		"requestKind", ast.StringTerm(cmp.Or(r.RequestKind, r.Kind)),
		"namespace", ast.StringTerm(r.Namespace),
		"name", ast.StringTerm(r.Name),
		"dryRun", ast.InternedTerm(r.DryRun),
		"time", at,
		"userInfo", record(
			"username", ast.StringTerm(r.UserInfo.Username),
			"uid", ast.StringTerm(r.UserInfo.UID),
			"groups", c.list(r.UserInfo.Groups),
			"extra", c.lists(r.UserInfo.Extra)))
}

func (c *converter) template(t *Template) *ast.Term {
	if t == nil {
		return ast.NullTerm()
	}
	parameters := make([]*ast.Term, len(t.Parameters))
	for i, p := range t.Parameters {
		kind := p.Type
		if kind == "" {
			kind = "string"
		}
		parameters[i] = record(
			"name", ast.StringTerm(p.Name),
			"displayName", ast.StringTerm(p.DisplayName),
			"description", ast.StringTerm(p.Description),
			"type", ast.StringTerm(kind),
			"required", ast.InternedTerm(p.Required),
			"sensitive", ast.InternedTerm(p.Sensitive),
			"value", ast.StringTerm(p.Value),
			"generate", ast.StringTerm(p.Generate),
			"pattern", ast.StringTerm(p.Pattern),
			"enum", c.list(p.Enum))
	}
	return record(
		"namespace", ast.StringTerm(t.Namespace),
		"name", ast.StringTerm(t.Name),
		"labels", c.texts(t.Labels),
		"annotations", c.texts(t.Annotations),
		"parameters", ast.ArrayTerm(parameters...))
}

// record makes an object of alternating names and values.
func record(pairs ...any) *ast.Term {
	items := make([][2]*ast.Term, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		items = append(items, [2]*ast.Term{keyTerm(pairs[i].(string)), pairs[i+1].(*ast.Term)})
	}
	return ast.ObjectTerm(items...)
}
