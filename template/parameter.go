package template

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// parameter is a declared parameter, ready for use. It is smaller than the one of the API, because a manager stores the parameters of all
// templates of the cluster.
type parameter struct {
	Name, Description, Value, From string

	generator generator // nil unless values are generated
	*extras             // shared by all parameters that have none

	Required, Sensitive, Mutable bool
	generate                     bool // Generate is GeneratorExpression
	used                         bool
	naming                       bool // see Naming
	source                       bool // see SelectsSource
	inserted                     contexts
}

// extras are what few parameters have.
type extras struct {
	DisplayName      string
	Multiline        bool
	Type             v1beta1.ParameterType
	Pattern          string
	Enum             []string
	Minimum, Maximum *int64

	pattern *regexp.Regexp
	size    int // of pattern, in instructions
}

// noExtras must not be modified.
var noExtras = &extras{}

// parameterOf returns a parameter that shares nothing with the declared one that could be modified.
func parameterOf(declared *v1beta1.Parameter) parameter {
	declared = declared.DeepCopy()
	p := parameter{
		Name: declared.Name, Description: declared.Description, Value: declared.Value, From: declared.From,
		Required: declared.Required, Sensitive: declared.Sensitive, Mutable: declared.Mutable, generate: declared.Generate != "", extras: noExtras,
	}
	own := extras{
		DisplayName: declared.DisplayName, Multiline: declared.Multiline, Type: declared.Type, Pattern: declared.Pattern,
		Enum: declared.Enum, Minimum: declared.Minimum, Maximum: declared.Maximum,
	}
	if !reflect.ValueOf(own).IsZero() {
		p.extras = &own
	}
	return p
}

// declared returns the parameter as it was declared. It shares nothing with p that could be modified.
func (p *parameter) declared() v1beta1.Parameter {
	declared := v1beta1.Parameter{
		Name: p.Name, Description: p.Description, Value: p.Value, From: p.From, Required: p.Required, Sensitive: p.Sensitive, Mutable: p.Mutable,
		DisplayName: p.DisplayName, Multiline: p.Multiline, Type: p.Type, Pattern: p.Pattern, Enum: p.Enum, Minimum: p.Minimum, Maximum: p.Maximum,
	}
	if p.generate {
		declared.Generate = v1beta1.GeneratorExpression
	}
	return *declared.DeepCopy()
}

// optional reports whether the value may end up empty.
func (p *parameter) optional() bool {
	return !p.Required && p.generator == nil
}

// shown returns a value of this parameter as a cause shows it.
func (p *parameter) shown(value string) any {
	if p.Sensitive {
		return omitted
	}
	return shown(value)
}

// check returns the cause if a value is invalid, or nil.
func (p *parameter) check(value string, at string) *field.Error {
	invalid := func(format string, arguments ...any) *field.Error {
		return &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: p.shown(value), Detail: fmt.Sprintf(format, arguments...)}
	}
	if !utf8.ValidString(value) {
		// JSON cannot hold it: all invalid bytes are replaced by the same character, so two values could become equal.
		return invalid("must be text in UTF-8")
	}
	if found, rejected := p.control(value); rejected {
		return &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: omitted, Detail: found.detail(p)}
	}
	if detail, rejected := p.unheld(value); rejected {
		return &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: omitted, Detail: detail}
	}
	switch p.Type {
	case v1beta1.ParameterTypeInt:
		if !isInteger(value) {
			return invalid("must be an integer")
		}
		if p.Minimum != nil && compareInteger(value, *p.Minimum) < 0 {
			return invalid("must be at least %d", *p.Minimum)
		}
		if p.Maximum != nil && compareInteger(value, *p.Maximum) > 0 {
			return invalid("must be at most %d", *p.Maximum)
		}
	case v1beta1.ParameterTypeBool:
		if value != "true" && value != "false" {
			return invalid("must be true or false")
		}
	case v1beta1.ParameterTypeBase64:
		if _, err := base64.StdEncoding.DecodeString(value); err != nil || strings.ContainsAny(value, "\r\n") {
			return invalid("must be base64 in the standard encoding, with padding and in one line")
		}
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, value) {
		if p.Sensitive {
			return invalid("must be one of the values that the template lists")
		}
		return unsupported(at, p.shown(value), p.Enum)
	}
	if p.pattern != nil {
		if len(value) > MaxMatchedBytes {
			return tooLarge(at, "a value with a pattern", len(value), MaxMatchedBytes, "bytes")
		}
		if !p.pattern.MatchString(value) {
			return invalid("must match %s as a whole", p.Pattern)
		}
	}
	return nil
}

// compareInteger compares an integer of any size with a bound.
func compareInteger(value string, bound int64) int {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err == nil && n == bound:
		return 0
	case err == nil && n < bound, err != nil && value[0] == '-':
		return -1
	default:
		return 1
	}
}

// declarations checks the parameters of a template.
type declarations struct {
	problems *problems
	warnings *warnings
	patterns int // instructions of all patterns so far
	made     int // bytes that the generators so far make
}

func (d *declarations) parameters(declared []v1beta1.Parameter) []parameter {
	if len(declared) > MaxParameters {
		d.problems.add(tooLarge(parametersAt.String(), "the list", len(declared), MaxParameters, "parameters"))
		return nil
	}
	parameters := make([]parameter, len(declared))
	for i := range declared {
		parameters[i] = parameterOf(&declared[i])
		at := parametersAt.item(i)
		d.name(declared, i, at.field("name"))
		d.parameter(&parameters[i], declared[i].Generate, at)
	}
	if d.made > MaxRenderedBytes {
		d.problems.add(tooLarge(parametersAt.String(), "what all generators make together", d.made, MaxRenderedBytes, "bytes"))
	}
	return parameters
}

func (d *declarations) name(declared []v1beta1.Parameter, i int, at *location) {
	name := declared[i].Name
	switch {
	case name == "":
		d.problems.add(field.Required(field.NewPath(at.String()), ""))
		return
	case wordLength(name) < len(name):
		// The published API stores such templates.
		d.warnings.add("%s: nothing can refer to %s: references consist of letters, digits and underscores", at, shown(name))
	}
	if slices.ContainsFunc(declared[:i], func(p v1beta1.Parameter) bool { return p.Name == name }) {
		d.problems.add(field.Duplicate(field.NewPath(at.String()), shown(name)))
		return
	}
	// Kubernetes requires that the name of an annotation begins and ends with a letter or digit, and is no longer than this.
	const longest = 63
	if len(name) > longest || name[0] == '_' || name[len(name)-1] == '_' {
		d.warnings.add("%s: no annotation can give a value to %s: Kubernetes allows at most %d characters that begin and end with a letter or digit", at, shown(name), longest)
	}
}

func (d *declarations) parameter(p *parameter, generate string, at *location) {
	before := len(d.problems.causes)
	d.typed(p, at)
	d.matched(p, at)
	sound := len(d.problems.causes) == before
	d.generated(p, generate, at)
	d.mutable(p, at)
	if !sound {
		return
	}
	for j, value := range p.Enum {
		// A listed value that can never be given is a mistake, so it must satisfy all rules but the list.
		unlisted, extras := *p, *p.extras
		extras.Enum = nil
		unlisted.extras = &extras
		if cause := unlisted.check(value, at.field("enum").item(j).String()); cause != nil {
			d.problems.add(cause)
		}
	}
	if p.Value != "" {
		if cause := p.check(p.Value, at.field("value").String()); cause != nil {
			d.problems.add(cause)
		}
		if p.Sensitive {
			d.warnings.add("%s: the default of the sensitive parameter %s can be read by everyone who can read the template", at.field("value"), shown(p.Name))
		}
	}
}

func (d *declarations) typed(p *parameter, at *location) {
	switch p.Type {
	case "", v1beta1.ParameterTypeString, v1beta1.ParameterTypeInt, v1beta1.ParameterTypeBase64:
	case v1beta1.ParameterTypeBool:
		if p.Pattern != "" || len(p.Enum) > 0 || p.generate {
			d.problems.invalid(at.field("type").String(), string(p.Type), "type bool takes no pattern, enum or generate")
		}
	default:
		d.problems.add(unsupported(at.field("type").String(), shown(string(p.Type)), []v1beta1.ParameterType{
			v1beta1.ParameterTypeString, v1beta1.ParameterTypeInt, v1beta1.ParameterTypeBool, v1beta1.ParameterTypeBase64,
		}))
	}
	if (p.Minimum != nil || p.Maximum != nil) && p.Type != v1beta1.ParameterTypeInt {
		d.problems.invalid(at.field("type").String(), string(p.Type), "minimum and maximum need type int")
	}
	if p.Multiline && p.Type != "" && p.Type != v1beta1.ParameterTypeString {
		d.problems.invalid(at.field("type").String(), string(p.Type), "multiline needs type string")
	}
	if p.Minimum != nil && p.Maximum != nil && *p.Minimum > *p.Maximum {
		d.problems.invalid(at.field("minimum").String(), *p.Minimum, "must not be above maximum, which is %d", *p.Maximum)
	}
	for j, value := range p.Enum {
		switch {
		case value == "":
			d.problems.add(field.Required(field.NewPath(at.field("enum").item(j).String()), ""))
		case slices.Contains(p.Enum[:j], value):
			d.problems.add(field.Duplicate(field.NewPath(at.field("enum").item(j).String()), p.shown(value)))
		}
	}
}

func (d *declarations) matched(p *parameter, at *location) {
	if p.Pattern == "" {
		return
	}
	place := at.field("pattern").String()
	parsed, err := syntax.Parse(p.Pattern, syntax.Perl)
	if err != nil {
		d.problems.invalid(place, shown(p.Pattern), "must be a regular expression in RE2 syntax: %s", shown(err.Error()))
		return
	}
	p.size = unrolled(parsed)
	d.patterns += p.size
	if d.patterns > MaxPatternSize {
		d.problems.add(tooLarge(place, "the patterns of the template so far, repetitions unrolled,", d.patterns, MaxPatternSize, "instructions"))
		return
	}
	p.pattern, err = regexp.Compile(`^(?:` + p.Pattern + `)$`)
	if err != nil {
		d.problems.invalid(place, shown(p.Pattern), "must be a regular expression in RE2 syntax: %s", shown(err.Error()))
	}
}

// unrolled estimates how many instructions an expression compiles to. It is checked before the compilation because of
// repetitions such as (a{100}){100}.
func unrolled(r *syntax.Regexp) int {
	size := 1 + len(r.Rune)/2
	for _, sub := range r.Sub {
		size += unrolled(sub)
	}
	if r.Op == syntax.OpRepeat {
		size *= max(r.Min, r.Max, 1)
	}
	return min(size, MaxPatternSize*MaxPatternSize)
}

func (d *declarations) generated(p *parameter, generate string, at *location) {
	switch generate {
	case v1beta1.GeneratorExpression:
	case "":
		if p.From != "" {
			d.warnings.add("%s: has no effect without generate", at.field("from"))
		}
		return
	default:
		d.problems.add(unsupported(at.field("generate").String(), shown(generate), []string{v1beta1.GeneratorExpression}))
		return
	}
	if p.Value != "" {
		d.warnings.add("%s: has no effect beside value", at.field("generate"))
		if p.From == "" {
			return
		}
	}
	if p.From == "" {
		d.problems.add(field.Required(field.NewPath(at.field("from").String()), "generate needs it"))
		return
	}
	g, ignored, err := parseGenerator(p.From)
	if err == nil && p.Type == v1beta1.ParameterTypeInt {
		err = g.makesIntegers()
	}
	if err != nil {
		d.problems.invalid(at.field("from").String(), p.shown(p.From), "%v", err)
		return
	}
	if found, rejected := p.control(p.From); rejected {
		d.problems.invalid(at.field("from").String(), omitted, "%s", found.detail(p))
		return
	}
	if ignored != "" {
		d.warnings.add("%s: these characters between brackets stand for nothing: %s", at.field("from"), shown(ignored))
	}
	if p.Value == "" {
		p.generator = g
		d.made += g.size()
	}
}

// makesIntegers returns an error when values of g are not always integers.
func (g generator) makesIntegers() error {
	position := 0
	for i, p := range g {
		characters := p.text
		if i == 0 && p.length == 0 {
			characters = strings.TrimPrefix(characters, "-")
		}
		if strings.Trim(characters, digits) != "" {
			return fmt.Errorf("type int needs a generator that makes nothing but digits")
		}
		leading := strings.HasPrefix(characters, "0") || p.length > 0 && strings.Contains(characters, "0")
		if position == 0 && leading && g.size() > 1 {
			return fmt.Errorf("type int needs a generator that never makes a leading 0: begin with [1-9]{1}")
		}
		position += len(characters)
	}
	return nil
}
