package conversion

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
)

// unsafeInXML are the characters that an attribute in ovf-env.xml cannot contain as they are. Values of parameters are inserted as they are. The
// template engine excludes both quotes.
const unsafeInXML = `<&"'`

// notInXML describes them and other excluded characters in notes.
const notInXML = "a control character or one of " + unsafeInXML

const (
	// maxEnum is the maximum number of values of a parameter.
	maxEnum = 256

	// maxRepeats is the largest sum of repetitions in the patterns of all properties of a template. The engine counts six instructions for each, and
	// accepts 10 000 in a template. RE2 accepts 1000 in a pattern.
	maxRepeats = 1000
)

// property is a property and what becomes of it.
type property struct {
	key string
	*ovf.Property
	// parameter is the name of its parameter; empty if the value is fixed.
	parameter string
	// value is the fixed value.
	value string
}

// all returns the properties of the system with their full keys.
func (s *system) all() []property {
	var all []property
	for i := range s.source.Products {
		product := &s.source.Products[i]
		for j := range product.Properties {
			p := &product.Properties[j]
			value, _ := p.Default(s.configuration)
			all = append(all, property{key: product.FullKey(p), Property: p, value: value})
		}
	}
	return all
}

// properties declares the parameters of properties that users configure.
func (s *system) properties() {
	if s.delivery() == DeliveryNone {
		return
	}
	for _, p := range s.all() {
		if !p.UserConfigurable || s.delivery() == DeliveryCloudInit && (!s.isCloudInit(&p) || isOwnName(&p)) {
			continue
		}
		s.byProperty[p.key] = s.declare(s.parameter(&p))
		s.note(ActionParameter, "property "+p.key, "the parameter %s", s.byProperty[p.key])
	}
}

// parameter returns the declaration of the parameter of a property.
func (s *system) parameter(p *property) v1beta1.Parameter {
	declared := v1beta1.Parameter{Name: parameterName(p.key), DisplayName: p.Label, Description: p.Description, Value: p.value, Sensitive: p.Password}
	if p.Category != "" && declared.Description == "" {
		declared.Description = p.Category
	}
	q := parseQualifiers(p.Qualifiers)
	switch {
	case p.Type == "boolean":
		declared.Type, declared.Value = v1beta1.ParameterTypeBool, "false"
		switch strings.ToLower(p.value) {
		case "true", "1":
			declared.Value = "true"
		case "false", "0", "":
		default:
			s.note(ActionWarning, "property "+p.key, "its default %.64q is neither true nor false, and becomes false", p.value)
		}
	case strings.HasPrefix(p.Type, "uint") || strings.HasPrefix(p.Type, "sint"):
		s.integer(p, &declared, q)
	case p.Type == "real32" || p.Type == "real64":
		declared.Pattern = `-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?`
	default:
		s.text(p, &declared, q)
	}
	if q.unknown != "" {
		s.note(ActionWarning, "property "+p.key, "the qualifiers %s are not checked", q.unknown)
	}
	s.defaults(p, &declared)
	return declared
}

// integer sets the range of an integer: that of its type, narrowed by qualifiers.
func (s *system) integer(p *property, declared *v1beta1.Parameter, q qualifiers) {
	declared.Type = v1beta1.ParameterTypeInt
	bits, err := strconv.Atoi(p.Type[len("uint"):])
	if err != nil || bits < 8 || bits > 64 {
		bits = 64
	}
	low, high := int64(0), int64(1<<(bits-1)-1)
	if p.Type[0] == 's' {
		low = -1 << (bits - 1)
	} else if bits < 64 {
		high = 1<<bits - 1
	}
	declared.Minimum, declared.Maximum = &low, &high
	if bits == 64 {
		declared.Maximum = nil
		if p.Type[0] == 's' {
			declared.Minimum = nil
		}
	}
	if q.minimum != nil {
		declared.Minimum = q.minimum
	}
	if q.maximum != nil {
		declared.Maximum = q.maximum
	}
	if declared.Minimum != nil && declared.Maximum != nil && *declared.Minimum > *declared.Maximum {
		s.note(ActionWarning, "property "+p.key, "its range is not checked: the minimum is above the maximum")
		declared.Minimum, declared.Maximum = nil, nil
	}
	for _, value := range q.values {
		if number, err := strconv.ParseInt(value, 10, 64); err == nil && len(declared.Enum) < maxEnum && strconv.FormatInt(number, 10) == value && inRange(declared, number) && !slices.Contains(declared.Enum, value) {
			declared.Enum = append(declared.Enum, value)
		}
	}
}

func inRange(p *v1beta1.Parameter, value int64) bool {
	return (p.Minimum == nil || value >= *p.Minimum) && (p.Maximum == nil || value <= *p.Maximum)
}

// text sets the pattern or the list of values of a text.
func (s *system) text(p *property, declared *v1beta1.Parameter, q qualifiers) {
	any := "[^" + unsafeInXML + "]"
	if s.delivery() == DeliveryCloudInit {
		any = "."
	}
	// The empty value is that of a parameter that is not given.
	values := slices.DeleteFunc(slices.Clone(q.values), func(v string) bool { return v == "" })
	if len(values) > 0 && len(values) <= maxEnum && !slices.ContainsFunc(values, func(v string) bool {
		return len(v) > 1024 || strings.ContainsAny(v, unsafeInXML) || strings.ContainsFunc(v, excluded)
	}) {
		for _, value := range values {
			if !slices.Contains(declared.Enum, value) {
				declared.Enum = append(declared.Enum, value)
			}
		}
		return
	}
	if len(q.values) > 0 {
		s.note(ActionWarning, "property "+p.key, "its list of values is not checked: there is none but the empty one, or one is too long, or contains %s", notInXML)
	}
	least, most := int64(0), int64(-1)
	if q.minLength != nil {
		least = *q.minLength
	}
	if q.maxLength != nil {
		most = *q.maxLength
	}
	longest := max(least, most)
	switch {
	case most >= 0 && most < least || least < 0 || s.repeats+longest > maxRepeats:
		s.note(ActionWarning, "property "+p.key, "its length is not checked: want at most %d characters for all properties together", maxRepeats)
		declared.Pattern = any + "*"
		least = 0
	case most >= 0:
		declared.Pattern = fmt.Sprintf("%s{%d,%d}", any, least, most)
	case least > 0:
		declared.Pattern = fmt.Sprintf("%s{%d,}", any, least)
	case any != ".":
		declared.Pattern = any + "*"
	}
	if least > 0 || most >= 0 {
		s.repeats += longest
	}
	declared.Required = least > 0
}

// passwordLength is the length of generated passwords, unless the property allows less or requires more.
const passwordLength = 20

// maxGenerated is the maximum number of characters that one expression generates.
const maxGenerated = 255

// defaults generates passwords, and drops defaults that the declaration would reject.
func (s *system) defaults(p *property, declared *v1beta1.Parameter) {
	if p.Password && declared.Value != "" {
		declared.Value = ""
		s.note(ActionWarning, "property "+p.key, "the default of a password, which everyone with the package has, is dropped")
	}
	if p.Password && p.Type == "string" && len(declared.Enum) == 0 {
		length := int64(passwordLength)
		q := parseQualifiers(p.Qualifiers)
		if q.maxLength != nil && *q.maxLength > 0 {
			length = min(length, *q.maxLength)
		}
		if q.minLength != nil {
			length = max(length, *q.minLength)
		}
		sample := *declared
		sample.Value = strings.Repeat("a", int(min(length, maxGenerated)))
		if length <= maxGenerated && acceptable(&sample) {
			declared.Generate, declared.From = v1beta1.GeneratorExpression, fmt.Sprintf("[a-zA-Z0-9]{%d}", length)
		}
	}
	if declared.Value != "" && !acceptable(declared) {
		if strings.Contains(declared.Value, "\n") {
			s.note(ActionWarning, "property "+p.key, "its default has a line break, which the value of a parameter here cannot have, and is dropped")
		} else {
			s.note(ActionWarning, "property "+p.key, "its default %.64q does not satisfy its declaration, or contains %s, and is dropped", declared.Value, notInXML)
		}
		declared.Value = ""
	}
}

// excluded reports whether the template engine accepts a character in no value, or in no attribute of XML: control characters other than a tab,
// separators of lines and paragraphs, noncharacters of Unicode, and byte order marks.
func excluded(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF
}

// acceptable reports whether a declaration accepts its default.
func acceptable(p *v1beta1.Parameter) bool {
	if p.Type == v1beta1.ParameterTypeInt {
		value, err := strconv.ParseInt(p.Value, 10, 64)
		if err != nil || strconv.FormatInt(value, 10) != p.Value || !inRange(p, value) {
			return false
		}
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, p.Value) || strings.ContainsFunc(p.Value, excluded) {
		return false
	}
	if p.Pattern == "" {
		return true
	}
	pattern, err := regexp.Compile(`^(?:` + p.Pattern + `)$`)
	return err == nil && pattern.MatchString(p.Value)
}

// qualifiers are the CIM qualifiers of a property.
type qualifiers struct {
	minLength, maxLength, minimum, maximum *int64
	values                                 []string
	// unknown are the other ones.
	unknown string
}

var (
	qualifier = regexp.MustCompile(`(\w+)\s*(?:\(([^()]*)\)|\{((?:[^{}"]|"[^"]*")*)\})?`)
	listed    = regexp.MustCompile(`"([^"]*)"|'([^']*)'|([^\s,"]+)`)
)

func parseQualifiers(text string) qualifiers {
	var q qualifiers
	for _, match := range qualifier.FindAllStringSubmatch(text, -1) {
		number, err := strconv.ParseInt(strings.TrimSpace(match[2]), 10, 64)
		var into **int64
		switch match[1] {
		case "MinLen":
			into = &q.minLength
		case "MaxLen":
			into = &q.maxLength
		case "MinValue":
			into = &q.minimum
		case "MaxValue":
			into = &q.maximum
		case "ValueMap":
			for _, value := range listed.FindAllStringSubmatch(match[3], -1) {
				q.values = append(q.values, value[1]+value[2]+value[3])
			}
			if match[3] != "" {
				continue
			}
		}
		if into == nil || err != nil {
			q.unknown = strings.TrimSpace(q.unknown + " " + match[0])
			continue
		}
		*into = &number
	}
	return q
}
