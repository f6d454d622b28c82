package jsonschema

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
)

// Draft identifies the version of JSON Schema.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Schema is a JSON Schema with the keywords that parameters need.
type Schema struct {
	Draft                string            `json:"$schema,omitempty"`
	Title                string            `json:"title,omitempty"`
	Description          string            `json:"description,omitempty"`
	Type                 string            `json:"type,omitempty"`
	Const                json.RawMessage   `json:"const,omitempty"`
	Enum                 []json.RawMessage `json:"enum,omitempty"`
	Pattern              string            `json:"pattern,omitempty"`
	MinLength            int               `json:"minLength,omitempty"`
	ContentEncoding      string            `json:"contentEncoding,omitempty"`
	Minimum              *int64            `json:"minimum,omitempty"`
	Maximum              *int64            `json:"maximum,omitempty"`
	Default              json.RawMessage   `json:"default,omitempty"`
	ReadOnly             bool              `json:"readOnly,omitempty"`
	WriteOnly            bool              `json:"writeOnly,omitempty"`
	AllOf                []*Schema         `json:"allOf,omitempty"`
	AnyOf                []*Schema         `json:"anyOf,omitempty"`
	Properties           Properties        `json:"properties,omitempty"`
	Required             []string          `json:"required,omitempty"`
	AdditionalProperties *bool             `json:"additionalProperties,omitempty"`
}

// Properties of an object, in the order of a form.
type Properties []Property

// Property is a property of an object.
type Property struct {
	Name string
	*Schema
}

// MarshalJSON implements json.Marshaler. It keeps the order.
func (p Properties) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, each := range p {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(each.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(each.Schema)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// Of returns the schema of the parameters of a template. Values that satisfy one of several variants satisfy it.
func Of(title, description string, variants []v1beta1.TemplateVariant) *Schema {
	s := &Schema{Draft: Draft, Title: title, Description: description}
	if len(variants) == 1 {
		s.object(variants[0].Parameters)
		return s
	}
	for _, variant := range variants {
		of := &Schema{Title: "Approval " + strings.Join(variant.Approvals, ", ")}
		of.object(variant.Parameters)
		s.AnyOf = append(s.AnyOf, of)
	}
	return s
}

func (s *Schema) object(parameters []v1beta1.AvailableParameter) {
	s.Type, s.AdditionalProperties = "object", new(bool)
	for i := range parameters {
		p := &parameters[i]
		if p.Fixed && p.Default == "" {
			continue
		}
		s.Properties = append(s.Properties, Property{p.Name, parameter(p)})
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
}

// Patterns of texts.
const (
	// oneLine are the characters that every parameter accepts, manyLines those that one with multiline accepts.
	oneLine   = "^[^\\x00-\\x08\\x0A-\\x1F\\x7F-\\x9F\u2028\u2029]*$"
	manyLines = "^[^\\x00-\\x08\\x0B-\\x1F\\x7F-\\x9F\u2028\u2029]*$"
	base64    = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
)

func parameter(p *v1beta1.AvailableParameter) *Schema {
	s := &Schema{Title: p.DisplayName, ReadOnly: p.Fixed, WriteOnly: p.Sensitive}
	if s.Title == "" {
		s.Title = p.Name
	}
	described := []string{p.Description}
	if p.Default != "" {
		s.Default = value(p.Type, p.Default)
	}
	if p.Fixed {
		s.Const = s.Default
	}
	for _, each := range p.Enum {
		s.Enum = append(s.Enum, value(p.Type, each))
	}
	var patterns []string
	switch p.Type {
	case templatev1beta1.ParameterTypeInt:
		s.Type, s.Minimum, s.Maximum = "integer", p.Minimum, p.Maximum
	case templatev1beta1.ParameterTypeBool:
		s.Type = "boolean"
	case templatev1beta1.ParameterTypeBase64:
		s.Type, s.ContentEncoding, patterns = "string", "base64", []string{base64}
	default:
		s.Type = "string"
		if patterns = []string{oneLine}; p.Multiline {
			patterns[0] = manyLines
		}
	}
	if len(s.Enum) > 0 || s.Const != nil {
		// The listed values satisfy everything else.
		patterns = nil
	} else {
		for _, each := range p.Patterns {
			if translated, ok := Pattern(each); ok && s.Type == "string" {
				patterns = append(patterns, translated)
			} else {
				described = append(described, "must match "+each+" as a whole")
			}
		}
		if s.Type == "string" && p.NonEmpty {
			s.MinLength = 1
		}
	}
	// The last one is of the approval or the template, so that a form shows it first.
	if last := len(patterns) - 1; last >= 0 {
		s.Pattern = patterns[last]
		for _, each := range patterns[:last] {
			s.AllOf = append(s.AllOf, &Schema{Pattern: each})
		}
	}
	described = append(described, p.Requirements...)
	s.Description = sentences(described)
	return s
}

// value returns a value as it is in JSON.
func value(kind templatev1beta1.ParameterType, text string) json.RawMessage {
	switch kind {
	case templatev1beta1.ParameterTypeInt, templatev1beta1.ParameterTypeBool:
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	// Encoding a text cannot fail.
	raw, _ := json.Marshal(text)
	return raw
}

// sentences joins a description and requirements.
func sentences(texts []string) string {
	var out strings.Builder
	for _, text := range texts {
		if text == "" {
			continue
		}
		if out.Len() > 0 {
			if !strings.HasSuffix(out.String(), ".") {
				out.WriteByte('.')
			}
			out.WriteByte(' ')
		}
		out.WriteString(strings.ToUpper(text[:1]) + text[1:])
	}
	return out.String()
}
