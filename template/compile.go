package template

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// Compiled is a template that can be rendered any number of times. It retains only what it needs of the object it was
// compiled from, and is safe for concurrent use.
type Compiled struct {
	parameters []parameter
	program    program
	message    []segment
	name       []segment // of metadata.name, if it contains references
	pattern    string    // metadata.name before replacement, if it contains references
	digest     [sha256.Size]byte
	warnings   []string
	drawn      int // maximum number of random characters that Bind draws
	made       int // maximum number of bytes that the generators make
	random     io.Reader
	outline    outline
	objects    *objects // nil if there are none: most templates of a cluster have none
	// defaults is CheckDefaults, which renders once.
	defaults func() (invalid, doubtful field.ErrorList)
}

// Option changes how Compile does its work.
type Option func(*Compiled)

// WithRandom draws generated values from source, which must be safe for
// concurrent use and yield uniformly distributed bytes. The default is
// crypto/rand.Reader. A drawn character takes one byte b below the largest
// multiple of the alphabet's size n and is number b modulo n of the alphabet in
// byte order; other bytes are skipped. Bytes are read in blocks.
func WithRandom(source io.Reader) Option {
	return func(c *Compiled) { c.random = source }
}

// Compile checks a template and prepares it for rendering. It does not retain or change t. All problems of the template are
// in an *InvalidError.
func Compile(t *v1beta1.VirtualMachineTemplate, options ...Option) (*Compiled, error) {
	c := &Compiled{random: rand.Reader}
	c.defaults = sync.OnceValues(c.checkDefaults)
	for _, option := range options {
		option(c)
	}
	written := t.Spec.Syntax
	if err := c.compile(&withBraces(t, true).Spec, written == v1beta1.SyntaxParentheses); err != nil {
		if written == v1beta1.SyntaxParentheses {
			err = respell(err)
		}
		return nil, err
	}
	if written == v1beta1.SyntaxParentheses {
		for i := range c.warnings {
			c.warnings[i] = inParenthesesAgain(c.warnings[i])
		}
	}
	return c, nil
}

// compile compiles a template in braces. With joined, ${{NAME}} in a text is a placeholder, see withBraces.
func (c *Compiled) compile(spec *v1beta1.VirtualMachineTemplateSpec, joined bool) error {
	problems, warnings := &problems{}, &warnings{}
	vm, others, rest, cause := read(spec)
	if cause != nil {
		problems.add(cause)
		return problems.err()
	}
	c.digest = digest(vm, others, rest)

	c.parameters = (&declarations{problems: problems, warnings: warnings}).parameters(spec.Parameters)
	if len(spec.Parameters) != len(c.parameters) {
		return problems.err()
	}
	references := c.references(spec, problems, warnings)
	references.joined = joined
	check := checker{problems: problems, references: references, parameters: c.parameters}

	name := nameOf(&vm)
	check.virtualMachine(&vm)
	identities := check.objects(others, &vm)
	var own []segment
	if !problems.any() {
		c.userDataSuspicions(&vm, warnings)
		c.markDocuments(&vm, others, problems)
		if spec.Secretize {
			var made []identity
			own, others, made = check.secretize(&vm, others)
			identities = append(identities, made...)
		}
		// The labels can be added only to objects without problems.
		check.objectLabels(&vm, others, spec.ObjectLabels)
	} else if len(spec.ObjectLabels) > 0 {
		check.labels(spec.ObjectLabels)
	}
	c.message = references.text(spec.Message, messageAt)
	if problems.any() {
		return problems.err()
	}

	if named := vm.get("metadata").get("name"); named != nil && named.open != nil && named.open.segments != nil {
		c.name, c.pattern = named.open.segments, name
	}
	for i := range c.parameters {
		p := &c.parameters[i]
		p.used = references.used[i]
		c.drawn += p.generator.drawn()
		c.made += p.generator.size()
	}
	if own != nil {
		c.parameters = append(c.parameters, ownName)
	}
	c.markParameters(&vm)
	c.checkMutable(&vm, others, problems)
	if problems.any() {
		return problems.err()
	}
	c.program = build(&vm, 0, c.parameters)
	if len(others) > 0 {
		// The list around the objects is not part of their depth.
		c.objects = &objects{program: build(&node{kind: kindList, items: others}, -1, c.parameters), identities: identities, own: own}
	}
	c.metadataSuspicions(vm.get("metadata"), virtualMachineAt.field("metadata"), warnings)
	c.warnings = slices.Clip(warnings.list)
	return nil
}

// read returns the VirtualMachine and the other objects of a template, and the rest of the spec as JSON.
func read(spec *v1beta1.VirtualMachineTemplateSpec) (vm node, others []node, rest []byte, cause *field.Error) {
	document, cause := encoded(spec.VirtualMachine, virtualMachineAt)
	if cause != nil {
		return node{}, nil, nil, cause
	}
	fields := *spec
	fields.VirtualMachine, fields.Objects = nil, nil
	rest, err := json.Marshal(fields)
	if err != nil {
		return node{}, nil, nil, field.InternalError(field.NewPath(specAt.String()), fmt.Errorf("encoding the spec: %w", err))
	}
	if len(spec.Objects) > MaxObjects {
		return node{}, nil, nil, tooLarge(objectsAt.String(), "the list", len(spec.Objects), MaxObjects, "objects")
	}
	size := len(document) + len(rest) - len("null")
	documents := make([][]byte, len(spec.Objects))
	for i := range documents {
		if documents[i], cause = encoded(&spec.Objects[i], objectsAt.item(i)); cause != nil {
			return node{}, nil, nil, cause
		}
		size += len(documents[i])
	}
	if size > MaxTemplateBytes {
		return node{}, nil, nil, tooLarge(specAt.String(), "the template", size, MaxTemplateBytes, "bytes of JSON")
	}
	if vm, cause = decoded(document, virtualMachineAt, "the VirtualMachine"); cause != nil {
		return node{}, nil, nil, cause
	}
	others = make([]node, len(documents))
	for i := range documents {
		if others[i], cause = decoded(documents[i], objectsAt.item(i), "the object"); cause != nil {
			return node{}, nil, nil, cause
		}
	}
	return vm, others, rest, nil
}

// encoded returns an object of the spec as JSON.
func encoded(object *runtime.RawExtension, at *location) ([]byte, *field.Error) {
	switch {
	case object == nil || len(object.Raw) == 0 && object.Object == nil:
		return nil, field.Required(field.NewPath(at.String()), "")
	case len(object.Raw) > 0:
		return object.Raw, nil
	}
	document, err := json.Marshal(object.Object)
	if err != nil {
		return nil, field.InternalError(field.NewPath(at.String()), fmt.Errorf("encoding the object: %w", err))
	}
	return document, nil
}

// decoded reads an object of the spec. what names it in causes.
func decoded(document []byte, at *location, what string) (node, *field.Error) {
	object, err := decode(string(document), MaxDepth, at)
	var cause *field.Error
	switch {
	case err == nil:
		return object, nil
	case errors.Is(err, errTooDeep):
		return node{}, tooLarge(at.String(), what, depthOf(document), MaxDepth, "levels of lists and objects")
	case errors.As(err, &cause):
		return node{}, cause
	default:
		return node{}, &field.Error{Type: field.ErrorTypeInvalid, Field: at.String(), BadValue: omitted, Detail: err.Error()}
	}
}

// depthOf counts the levels of a document that is nested too deep to be decoded.
func depthOf(document []byte) int {
	depth, deepest, text := 0, 0, false
	for i := 0; i < len(document); i++ {
		switch c := document[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{', c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}', c == ']':
			depth--
		}
	}
	return deepest
}

// digest returns the SHA-256 of the spec in canonical form.
func digest(vm node, others []node, rest []byte) [sha256.Size]byte {
	spec, err := decode(string(rest), MaxDepth, specAt)
	if err != nil {
		// encoding/json produced it just now, from types with three levels.
		panic(fmt.Sprintf("reading back the spec: %v", err))
	}
	*spec.get("virtualMachine") = vm
	if len(others) > 0 {
		*spec.object("objects") = node{kind: kindList, items: others}
	}
	return sha256.Sum256(spec.appendCanonical(make([]byte, 0, 4096)))
}

func (c *Compiled) references(spec *v1beta1.VirtualMachineTemplateSpec, problems *problems, warnings *warnings) *references {
	r := &references{
		index:    make(map[string]int, len(c.parameters)),
		names:    make([]string, len(c.parameters)),
		used:     make([]bool, len(c.parameters)),
		problems: problems,
		warnings: warnings,
	}
	for i := range c.parameters {
		name := c.parameters[i].Name
		r.names[i] = name
		if _, found := r.index[name]; !found {
			r.index[name] = i
		}
	}
	switch spec.UndefinedReferences {
	case "", v1beta1.UndefinedReferencesReject:
	case v1beta1.UndefinedReferencesKeep:
		r.keep = true
	default:
		problems.add(unsupported(specAt.field("undefinedReferences").String(), shown(string(spec.UndefinedReferences)),
			[]v1beta1.UndefinedReferencesPolicy{v1beta1.UndefinedReferencesReject, v1beta1.UndefinedReferencesKeep}))
	}
	if spec.Syntax != "" && spec.Syntax != v1beta1.SyntaxBraces {
		problems.add(unsupported(specAt.field("syntax").String(), shown(string(spec.Syntax)), []v1beta1.Syntax{v1beta1.SyntaxBraces, v1beta1.SyntaxParentheses}))
	}
	return r
}

// nameOf returns metadata.name without replacing references.
func nameOf(vm *node) string {
	if metadata := vm.get("metadata"); metadata != nil {
		if name := metadata.get("name"); name != nil && name.kind == kindString {
			return name.text
		}
	}
	return ""
}

// Digest returns "sha256:" and the hexadecimal SHA-256 of the template's spec as JSON without white space, with sorted keys
// and numbers in their original spelling. It is the same for both versions of the API.
func (c *Compiled) Digest() string { return "sha256:" + hex.EncodeToString(c.digest[:]) }

// Parameters returns a copy of the declared parameters, in their order.
func (c *Compiled) Parameters() []v1beta1.Parameter {
	parameters := c.declared()
	declared := make([]v1beta1.Parameter, len(parameters))
	for i := range parameters {
		declared[i] = parameters[i].declared()
	}
	return declared
}

// Sensitive reports whether the template has a sensitive parameter of this name.
func (c *Compiled) Sensitive(name string) bool {
	i := c.find(name)
	return i >= 0 && c.parameters[i].Sensitive
}

// HasSensitive reports whether the template has any sensitive parameter.
func (c *Compiled) HasSensitive() bool {
	return slices.ContainsFunc(c.parameters, func(p parameter) bool { return p.Sensitive })
}

// Unused returns the names of the parameters without references.
func (c *Compiled) Unused() []string {
	var names []string
	for _, p := range c.declared() {
		if !p.used {
			names = append(names, p.Name)
		}
	}
	return names
}

// Warnings returns what is suspicious about the template but valid, one sentence each, 32 at most.
func (c *Compiled) Warnings() []string { return slices.Clone(c.warnings) }

// NamePattern returns metadata.name of the template's VirtualMachine with its placeholders of the form ${NAME}, and "" if it
// has none.
func (c *Compiled) NamePattern() string { return c.pattern }

// find returns the index of the parameter with this name, or -1.
func (c *Compiled) find(name string) int {
	return slices.IndexFunc(c.declared(), func(p parameter) bool { return p.Name == name })
}
