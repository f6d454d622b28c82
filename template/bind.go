package template

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Binding holds a value for each parameter of one Compiled. It does not change,
// and is safe for concurrent use.
type Binding struct {
	compiled *Compiled
	values   []string
}

// maxBlock is the maximum number of random bytes that are read at a time.
const maxBlock = 256

// maxAttempts is the maximum number of values that are generated for a parameter, until one fits into the documents of the template.
const maxAttempts = 100

// Bind sets the value of every parameter: the given one, or else the template's default, or else a generated one. Parameters
// without any of these are empty, which is an error for a required parameter. An empty given value is ignored where the
// template generates one or has no default; otherwise it replaces the default, and must satisfy the same rules as any other.
//
// Causes name parameters[NAME], and spec.parameters[i].from where a generated value breaks the rules of its own parameter.
func (c *Compiled) Bind(values map[string]string) (*Binding, error) {
	parameters := c.declared()
	b := &Binding{compiled: c, values: make([]string, len(parameters))}
	var problems problems
	known, missing := 0, 0
	for i := range parameters {
		p := &parameters[i]
		value, given := values[p.Name]
		if given {
			known++
		}
		if p.generator != nil && value == "" {
			missing++
			continue
		}
		var cause *field.Error
		if b.values[i], cause = p.chosen(value, given); cause != nil {
			problems.add(cause)
		}
	}
	if known != len(values) {
		c.unknown(values, &problems)
	}
	if problems.any() {
		slices.SortStableFunc(problems.causes, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
		return nil, problems.err()
	}
	if missing > 0 {
		if err := c.generate(b.values, c.random); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Values returns the values of all parameters, by name. Parameters without a value have "".
func (b *Binding) Values() map[string]string {
	values := make(map[string]string, len(b.values))
	for i, value := range b.values {
		values[b.compiled.parameters[i].Name] = value
	}
	return values
}

// chosen returns the value of a parameter that generates none: the given one, or else the default, or "". The cause is a value that is not valid, or
// missing.
func (p *parameter) chosen(value string, given bool) (string, *field.Error) {
	switch {
	case value != "", given && p.Value != "":
		return value, p.validate(value)
	case p.Value != "":
		return p.Value, nil
	case p.Required:
		return "", p.required()
	default:
		return "", nil
	}
}

// at returns the path at which a given value is reported.
func (p *parameter) at() string { return "parameters[" + p.Name + "]" }

func (p *parameter) required() *field.Error {
	return &field.Error{Type: field.ErrorTypeRequired, Field: p.at(), Detail: "the template has no value for it"}
}

// validate validates a given value, and returns the cause or nil.
func (p *parameter) validate(value string) *field.Error {
	if value == "" && p.Required {
		return p.required()
	}
	return p.check(value, p.at())
}

// Accepts reports whether a value satisfies the declaration of the parameter of this name.
func (c *Compiled) Accepts(name, value string) bool {
	i := c.find(name)
	return i >= 0 && c.parameters[i].validate(value) == nil
}

// unknown reports the given values without a parameter. It shows none of them: a misspelt password is a password.
func (c *Compiled) unknown(values map[string]string, problems *problems) {
	var unknown []string
	for name := range values {
		if c.find(name) < 0 {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	parameters := c.declared()
	names := make([]string, len(parameters))
	for i := range names {
		names[i] = parameters[i].Name
	}
	for _, name := range unknown {
		if problems.full() {
			problems.more++
			continue
		}
		detail := "the template has no such parameter"
		if near := Nearest(name, names); near != "" {
			detail += fmt.Sprintf("; did you mean %s?", near)
		}
		problems.invalid(fmt.Sprintf("parameters[%s]", shown(name)), omitted, "%s", detail)
	}
}

// generate fills the values that generators make of a source of random bytes. All of them are made in one buffer.
func (c *Compiled) generate(values []string, source io.Reader) error {
	block := min(maxBlock, c.drawn+c.drawn/4)
	buffer := make([]byte, block, block+c.made)
	random := entropy{source: source, block: buffer, next: block}
	made := buffer[block:]
	ends := make([]int, 0, 8)
	for i := range values {
		p := &c.parameters[i]
		if p.generator == nil || values[i] != "" {
			continue
		}
		var err error
		start := len(made)
		for attempt := 1; ; attempt++ {
			if made, err = p.generator.append(made[:start], &random); err != nil {
				return fmt.Errorf("generating parameter %s: %w", p.Name, err)
			}
			if p.inserted == 0 || attempt == maxAttempts {
				break
			}
			if _, rejected := p.unheld(string(made[start:])); !rejected {
				break
			}
		}
		ends = append(ends, len(made))
	}
	var problems problems
	text, start := string(made), 0
	for i := range values {
		p := &c.parameters[i]
		if p.generator == nil || values[i] != "" {
			continue
		}
		values[i] = text[start:ends[0]]
		start, ends = ends[0], ends[1:]
		if p.Type == "" && p.pattern == nil && len(p.Enum) == 0 && p.inserted == 0 {
			continue
		}
		if cause := p.check(values[i], parametersAt.item(i).field("from").String()); cause != nil {
			cause.Detail = "what it generated " + cause.Detail
			problems.add(cause)
		}
	}
	return problems.err()
}
