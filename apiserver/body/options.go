package body

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
)

// maximumShown is how much of a name a message shows, in bytes.
const maximumShown = 64

// versions are the versions of the API; their fields are the same.
var versions = []string{"v1alpha1", "v1beta1"}

// fields are those of ProcessOptions, in the order in which a message names them.
var fields = []string{"apiVersion", "kind", "metadata", "parameters", "targetNamespace", "explain"}

// Options reads a ProcessOptions. An empty body is an empty ProcessOptions. Errors are of type *Malformed.
func Options(raw []byte) (v1beta1.ProcessOptions, error) {
	var options v1beta1.ProcessOptions
	root, err := parse(raw)
	if err != nil {
		return options, err
	}
	if root.kind == null {
		return options, nil
	}
	if root.kind != object {
		return options, malformed(root.line, root.column, "it must be an object of kind ProcessOptions, not %s", kindNames[root.kind])
	}
	for _, one := range root.members {
		if err := set(&options, one); err != nil {
			return v1beta1.ProcessOptions{}, err
		}
	}
	return options, nil
}

func set(options *v1beta1.ProcessOptions, one member) error {
	value := one.value
	if !slices.Contains(fields, one.name) {
		return malformed(one.line, one.column, "ProcessOptions has no field %s; it has %s", shown(one.name), strings.Join(fields, ", "))
	}
	if value.kind == null {
		return nil
	}
	switch one.name {
	case "metadata":
		return value.want(object, one.name)
	case "parameters":
		return setParameters(options, value)
	case "explain":
		if value.kind != scalar || value.text != "true" && value.text != "false" {
			return malformed(value.line, value.column, "explain must be true or false")
		}
		options.Explain = value.text == "true"
		return nil
	}
	if err := value.want(text, one.name); err != nil {
		return err
	}
	switch one.name {
	case "targetNamespace":
		options.TargetNamespace = value.text
	case "kind":
		if value.text != "ProcessOptions" {
			return malformed(value.line, value.column, "kind must be ProcessOptions")
		}
	case "apiVersion":
		group, version, _ := strings.Cut(value.text, "/")
		if group != v1beta1.GroupName || !slices.Contains(versions, version) {
			return malformed(value.line, value.column, "apiVersion must be %s/%s", v1beta1.GroupName, strings.Join(versions, " or "+v1beta1.GroupName+"/"))
		}
	}
	return nil
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
