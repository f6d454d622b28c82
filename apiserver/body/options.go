package body

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// maximumShown is how much of a name a message shows, in bytes.
const maximumShown = 64

// fields of ProcessOptions that have an effect.
var fields = []string{"parameters", "targetNamespace", "explain"}

// Options reads a ProcessOptions. An empty body is an empty ProcessOptions. Released clients send other kinds, so kind and apiVersion have no
// effect, and unknown fields lead to warnings, unless they look like misspelled ones: a misspelled field must not be without effect. Errors are
// of type *Malformed.
func Options(raw []byte) (options v1beta1.ProcessOptions, warnings []string, err error) {
	root, err := parse(raw)
	if err != nil || root.kind == null {
		return options, nil, err
	}
	if root.kind != object {
		return options, nil, malformed(root.line, root.column, "it must be an object of kind ProcessOptions, not %s", kindNames[root.kind])
	}
	for _, one := range root.members {
		switch {
		case one.name == "apiVersion", one.name == "kind", one.name == "metadata":
		case slices.Contains(fields, one.name):
			err = set(&options, one)
		case one.name == "dryRun":
			err = malformed(one.line, one.column, "dryRun is a parameter of the URL: ?dryRun=All")
		default:
			if near := near(one.name); near != "" {
				err = malformed(one.line, one.column, "ProcessOptions has no field %s; did you mean %s?", shown(one.name), near)
				break
			}
			warnings = append(warnings, "unknown field "+shown(one.name))
		}
		if err != nil {
			return v1beta1.ProcessOptions{}, nil, err
		}
	}
	return options, warnings, nil
}

// near returns the field that a name seems to stand for, or "".
func near(name string) string {
	if strings.HasPrefix(strings.ToLower(name), "par") { // params, parms
		return "parameters"
	}
	return template.Nearest(name, fields)
}

func set(options *v1beta1.ProcessOptions, one member) error {
	value := one.value
	if value.kind == null {
		return nil
	}
	switch one.name {
	case "parameters":
		return setParameters(options, value)
	case "explain":
		if value.kind != scalar || value.text != "true" && value.text != "false" {
			return malformed(value.line, value.column, "explain must be true or false")
		}
		options.Explain = value.text == "true"
		return nil
	}
	options.TargetNamespace = value.text
	return value.want(text, one.name)
}

func setParameters(options *v1beta1.ProcessOptions, value node) error {
	if err := value.want(object, "parameters"); err != nil {
		return err
	}
	options.Parameters = make(map[string]string, len(value.members))
	for _, parameter := range value.members {
		switch parameter.value.kind {
		case text, scalar, null:
			options.Parameters[parameter.name] = parameter.value.text
		default:
			return malformed(parameter.value.line, parameter.value.column, "the value of parameter %s must be a string, a number, true or false, not %s", shown(parameter.name), kindNames[parameter.value.kind])
		}
	}
	return nil
}

func (n node) want(k kind, name string) error {
	if n.kind != k {
		return malformed(n.line, n.column, "%s must be %s, not %s", name, kindNames[k], kindNames[n.kind])
	}
	return nil
}

// shown returns a name in the form of messages.
func shown(name string) string {
	if len(name) > maximumShown {
		name = name[:maximumShown] + "…"
	}
	return strconv.Quote(name)
}
