package definitions_test

import (
	"fmt"
	"strings"
	"testing"
)

// parameters is a list of n parameters with long names and a list of values each.
func parameters(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "{name: P%0240d, type: string, pattern: '.*', value: v199, enum: [", i)
		for j := range 200 {
			fmt.Fprintf(&list, "v%d,", j)
		}
		list.WriteString("]},")
	}
	return "{virtualMachine: {}, parameters: [" + list.String() + "]}"
}

func TestSchemas(t *testing.T) {
	const (
		template = "VirtualMachineTemplate"
		request  = "VirtualMachineTemplateRequest"
		vm       = "virtualMachineRef: {namespace: a, name: b}"
	)
	for name, tc := range map[string]struct {
		kind, spec string
		refused    string // empty when the object is taken
	}{
		"a template with a VirtualMachine and nothing else": {kind: template, spec: `{virtualMachine: {}}`},
		"fields of the VirtualMachine that nobody knows":    {kind: template, spec: `{virtualMachine: {apiVersion: a, anything: [{goes: 1}]}}`},
		"everything that a parameter can have": {kind: template, spec: `{virtualMachine: {}, message: hi, objectLabels: {"${A}": b}, undefinedReferences: Keep, syntax: Parentheses, parameters: [
			{name: A, displayName: a, description: b, generate: expression, from: "x[a-z]{4}", required: true, type: string, pattern: "x.*", enum: [x], sensitive: true},
			{name: b_2, type: int, value: "3", minimum: -1, maximum: 5}, {name: _C, type: bool, value: "true"}, {name: "4", type: base64}]}`},
		"a generator beside a default, which needs nothing to work from": {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, value: x, generate: expression}]}`},
		"an empty default beside a list of values":                       {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, value: "", enum: [x]}]}`},
		"100 parameters, as large as they may be":                        {kind: template, spec: parameters(100)},
		"256 parameters, as large as they may be":                        {kind: template, spec: parameters(256)},

		"32 other objects, with fields that nobody knows": {kind: template, spec: `{virtualMachine: {}, objects: [` + strings.Repeat(`{apiVersion: v1, kind: "${A}", anything: [{goes: 1}]}, `, 32) + `]}`},
		"33 other objects":                         {kind: template, spec: `{virtualMachine: {}, objects: [` + strings.Repeat(`{}, `, 33) + `]}`, refused: `spec.objects: Too many: 33: must have at most 32 items`},
		"another object that is none":              {kind: template, spec: `{virtualMachine: {}, objects: [text]}`, refused: `spec.objects[0]: Invalid value: "string": spec.objects[0] in body must be of type object: "string"`},
		"no VirtualMachine":                        {kind: template, spec: `{message: hi}`, refused: `spec.virtualMachine: Required value`},
		"257 parameters":                           {kind: template, spec: parameters(257), refused: `spec.parameters: Too many: 257: must have at most 256 items`},
		"a parameter without a name":               {kind: template, spec: `{virtualMachine: {}, parameters: [{value: a}]}`, refused: `spec.parameters[0].name: Required value`},
		"a name that no placeholder can have":      {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A-B}]}`},
		"a name that is taken":                     {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A}, {name: A}]}`, refused: `spec.parameters: Invalid value: parameter names must be unique`},
		"another generator":                        {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, generate: uuid, from: "[a]{1}"}]}`, refused: `spec.parameters[0].generate: Unsupported value: "uuid"`},
		"nothing to generate from":                 {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, generate: expression}]}`, refused: `spec.parameters[0].from: Required value: generate needs from`},
		"something to generate from and no way":    {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, from: "[a]{1}"}]}`},
		"no expression to generate from":           {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, generate: expression, from: x}]}`, refused: `spec.parameters[0].from: Invalid value: "x"`},
		"another type":                             {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, type: float}]}`, refused: `spec.parameters[0].type: Unsupported value: "float"`},
		"several lines of what is no text":         {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, type: int, multiline: true}]}`, refused: `spec.parameters[0].type: Invalid value: multiline needs type string`},
		"a bound of what is no integer":            {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, maximum: 3}]}`, refused: `spec.parameters[0].type: Invalid value: minimum and maximum need type int`},
		"bounds that exclude everything":           {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, type: int, minimum: 3, maximum: 2}]}`, refused: `spec.parameters[0].minimum: Invalid value: minimum must not be above maximum`},
		"a pattern for booleans":                   {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, type: bool, pattern: t}]}`, refused: `spec.parameters[0].type: Invalid value: type bool takes no pattern, enum or generate`},
		"a default that is not listed":             {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, enum: [a, b], value: c}]}`, refused: `spec.parameters[0].value: Invalid value: value must be one of enum`},
		"a value that is listed twice":             {kind: template, spec: `{virtualMachine: {}, parameters: [{name: A, enum: [a, a]}]}`, refused: `spec.parameters[0].enum[1]: Duplicate value: "a"`},
		"another policy for undefined references":  {kind: template, spec: `{virtualMachine: {}, undefinedReferences: Ignore}`, refused: `spec.undefinedReferences: Unsupported value: "Ignore"`},
		"another syntax":                           {kind: template, spec: `{virtualMachine: {}, syntax: Brackets}`, refused: `spec.syntax: Unsupported value: "Brackets"`},
		"a request with all it can have":           {kind: request, spec: `{` + vm + `, templateName: c, templateLabels: {a: b, xtemplate.kubevirt.io/a: b}, ttlSecondsAfterFinished: 0}`},
		"a request for nothing":                    {kind: request, spec: `{}`, refused: `spec.virtualMachineRef: Required value`},
		"a request for a VirtualMachine somewhere": {kind: request, spec: `{virtualMachineRef: {name: a}}`, refused: `spec.virtualMachineRef.namespace: Required value`},
		"a label that is reserved":                 {kind: request, spec: `{` + vm + `, templateLabels: {template.kubevirt.io/a: b}}`, refused: `spec.templateLabels: Invalid value: keys must not start with template.kubevirt.io/`},
		"a time to live below zero":                {kind: request, spec: `{` + vm + `, ttlSecondsAfterFinished: -1}`, refused: `spec.ttlSecondsAfterFinished: Invalid value: -1`},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(version+": "+name, func(t *testing.T) {
				object := fmt.Sprintf("{apiVersion: template.kubevirt.io/%s, kind: %s, metadata: {name: x, namespace: default}, spec: %s}", version, tc.kind, tc.spec)
				out, err := shared.Plane(t).Kubectl(t.Context(), nil, object, "create", "--dry-run=server", "--filename=-")
				if err != nil {
					t.Fatal(err)
				}
				if tc.refused == "" && out.Code != 0 {
					t.Errorf("refused: %s", out.Stderr)
				}
				if tc.refused != "" && (out.Code == 0 || !strings.Contains(out.Stderr, tc.refused)) {
					t.Errorf("got exit code %d and %q, want a refusal with %q", out.Code, out.Stderr, tc.refused)
				}
			})
		}
	}
}
