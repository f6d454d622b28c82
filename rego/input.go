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
	// document of an input that was converted in part.
	document *Document
}

// NewInput converts a document. It does not modify or retain the document's maps. The error is about values that are not JSON.
func NewInput(d Document) (*Input, error) { return newInput(&d, wholeDocument) }

// NewInputOf converts the parts of a document that are read, for policies that read nothing else. They have the same findings and errors as with all
// of the document. It retains the document, which must not change before the last call of Digest.
func NewInputOf(d Document, read *Fields) (*Input, error) {
	if read.root.whole {
		return NewInput(d)
	}
	in, err := newInput(&d, &read.root)
	if err != nil {
		return nil, err
	}
	retained := d
	in.document = &retained
	return in, nil
}

func newInput(d *Document, read *fields) (*Input, error) {
	var c converter
	object, err := c.object(d.Object, read.of("object"))
	if err != nil {
		return nil, fmt.Errorf("input.object: %w", err)
	}
	old, err := c.object(d.OldObject, read.of("oldObject"))
	if err != nil {
		return nil, fmt.Errorf("input.oldObject: %w", err)
	}
	instancetype, err := c.object(d.Instancetype, read.of("instancetype"))
	if err != nil {
		return nil, fmt.Errorf("input.instancetype: %w", err)
	}
	preference, err := c.object(d.Preference, read.of("preference"))
	if err != nil {
		return nil, fmt.Errorf("input.preference: %w", err)
	}
	item := read.of("objects").item()
	objects := make([]*ast.Term, len(d.Objects))
	for i, each := range d.Objects {
		if objects[i], err = c.object(each, item); err != nil {
			return nil, fmt.Errorf("input.objects[%d]: %w", i, err)
		}
	}
	in := &Input{term: record(
		"request", c.request(d.Request, read.of("request")),
		"object", object,
		"oldObject", old,
		"namespace", c.namespace(d.Namespace, read.of("namespace")),
		"template", c.template(d.Template, read.of("template")),
		"parameters", c.texts(d.Parameters, read.of("parameters")),
		"instancetype", instancetype,
		"preference", preference,
		"objects", ast.ArrayTerm(objects...))}
	in.weight = c.weight
	in.of = ObjectKey{Kind: cmp.Or(d.Request.RequestKind, d.Request.Kind), Namespace: d.Request.Namespace, Name: d.Request.Name}
	return in, nil
}

// Digest is "sha256:" and the digest of the canonical JSON of the whole document. It is
// computed on the first call.
func (i *Input) Digest() string {
	i.digestOnce.Do(func() {
		term := i.term
		if i.document != nil {
			whole, err := NewInput(*i.document)
			if err != nil {
				return // it had been converted without an error
			}
			term = whole.term
		}
		// The JSON of an AST has its keys sorted.
		sum := sha256.Sum256([]byte(term.Value.String()))
		i.digest = "sha256:" + hex.EncodeToString(sum[:])
	})
	return i.digest
}

func (c *converter) namespace(n Namespace, read *fields) *ast.Term {
	labels, annotations := c.texts(n.Labels, read.of("labels")), c.texts(n.Annotations, read.of("annotations"))
	if read == nil {
		return ast.InternedNullTerm
	}
	return record("name", ast.StringTerm(n.Name), "labels", labels, "annotations", annotations)
}

func (c *converter) request(r Request, read *fields) *ast.Term {
	user := read.of("userInfo")
	groups, extra := c.list(r.UserInfo.Groups, user.of("groups")), c.lists(r.UserInfo.Extra, user.of("extra"))
	if read == nil {
		return ast.InternedNullTerm
	}
	at := ast.InternedNullTerm
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
			"groups", groups,
			"extra", extra))
}

func (c *converter) template(t *Template, read *fields) *ast.Term {
	if t == nil {
		return ast.InternedNullTerm
	}
	labels, annotations := c.texts(t.Labels, read.of("labels")), c.texts(t.Annotations, read.of("annotations"))
	parameters := c.parameters(t.Parameters, read.of("parameters"))
	if read == nil {
		return ast.InternedNullTerm
	}
	return record("namespace", ast.StringTerm(t.Namespace), "name", ast.StringTerm(t.Name), "labels", labels, "annotations", annotations, "parameters", parameters)
}

func (c *converter) parameters(list []TemplateParameter, read *fields) *ast.Term {
	item := read.item()
	parameters := make([]*ast.Term, len(list))
	for i, p := range list {
		enum := c.list(p.Enum, item.of("enum"))
		if item == nil {
			parameters[i] = ast.InternedNullTerm
			continue
		}
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
			"enum", enum)
	}
	return ast.ArrayTerm(parameters...)
}

// record makes an object of alternating names and values.
func record(pairs ...any) *ast.Term {
	items := make([][2]*ast.Term, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		items = append(items, [2]*ast.Term{keyTerm(pairs[i].(string)), pairs[i+1].(*ast.Term)})
	}
	return ast.ObjectTerm(items...)
}
