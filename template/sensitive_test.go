package template_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/template"
)

// TestNoCauseHoldsASensitiveValue causes every kind of error that may involve a value.
func TestNoCauseHoldsASensitiveValue(t *testing.T) {
	const secret, base64Secret = "hunter2", "aHVudGVyMg=="

	for name, tc := range map[string]struct {
		spec   string
		values map[string]string
		vmName string
	}{
		"a default that is no integer":             {spec: `{parameters: [{name: S, type: int, value: hunter2, sensitive: true}], virtualMachine: {}}`},
		"a default that does not match":            {spec: `{parameters: [{name: S, pattern: "x", value: hunter2, sensitive: true}], virtualMachine: {}}`},
		"a default that is not listed":             {spec: `{parameters: [{name: S, enum: [x], value: hunter2, sensitive: true}], virtualMachine: {}}`},
		"a listed value that does not match":       {spec: `{parameters: [{name: S, pattern: "x", enum: [hunter2], sensitive: true}], virtualMachine: {}}`},
		"a listed value that occurs twice":         {spec: `{parameters: [{name: S, enum: [hunter2, hunter2], sensitive: true}], virtualMachine: {}}`},
		"a generator that is broken":               {spec: `{parameters: [{name: S, generate: expression, from: "hunter2[z-a]{1}", sensitive: true}], virtualMachine: {}}`},
		"a generator that makes no integers":       {spec: `{parameters: [{name: S, type: int, generate: expression, from: "hunter[2]{1}", sensitive: true}], virtualMachine: {}}`},
		"a generated value that does not match":    {spec: `{parameters: [{name: S, pattern: "x", generate: expression, from: "hunter[2]{1}", sensitive: true}], virtualMachine: {}}`},
		"a value that is no integer":               {spec: `{parameters: [{name: S, type: int, sensitive: true}], virtualMachine: {}}`, values: map[string]string{"S": secret}},
		"a value that is no boolean":               {spec: `{parameters: [{name: S, type: bool, sensitive: true}], virtualMachine: {}}`, values: map[string]string{"S": secret}},
		"a value that is not base64":               {spec: `{parameters: [{name: S, type: base64, sensitive: true}], virtualMachine: {}}`, values: map[string]string{"S": secret}},
		"a value that does not match":              {spec: `{parameters: [{name: S, pattern: "x", sensitive: true}], virtualMachine: {}}`, values: map[string]string{"S": secret}},
		"a value of which another is listed":       {spec: `{parameters: [{name: S, enum: [x], sensitive: true}], virtualMachine: {}}`, values: map[string]string{"S": secret}},
		"a listed value when another is given":     {spec: `{parameters: [{name: S, enum: [hunter2], sensitive: true}], virtualMachine: {}}`, values: map[string]string{"S": "x"}},
		"a value under a misspelt name":            {spec: `{parameters: [{name: PASSWORD, sensitive: true}], virtualMachine: {}}`, values: map[string]string{"PASWORD": secret}},
		"a value that is no JSON":                  {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {spec: {running: "${{S}}"}}}`, values: map[string]string{"S": secret}},
		"a value that is a string for an integer":  {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {spec: {template: {spec: {domain: {cpu: {cores: "${{S}}"}}}}}}}`, values: map[string]string{"S": `"hunter2"`}},
		"a value with a field that does not exist": {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {spec: {template: "${{S}}"}}}`, values: map[string]string{"S": `{"hunter2":1}`}},
		"a value with a key that occurs twice":     {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {spec: {template: "${{S}}"}}}`, values: map[string]string{"S": `{"hunter2":1,"hunter2":2}`}},
		"a value that is no string":                {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {metadata: {name: "${{S}}"}}}`, values: map[string]string{"S": `["hunter2"]`}},
		"a value in a quantity":                    {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {spec: {template: {spec: {domain: {memory: {guest: "${S}Gi"}}}}}}}`, values: map[string]string{"S": secret}},
		"a value as a key that collides":           {spec: `{parameters: [{name: S, sensitive: true}, {name: T}], virtualMachine: {metadata: {labels: {"${S}": a, "${T}": b}}}}`, values: map[string]string{"S": secret, "T": secret}},
		"a value as a field that does not exist":   {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {spec: {template: {spec: {domain: {"${S}": 1}}}}}}`, values: map[string]string{"S": secret}},
		"a value inside a field that is named by a parameter": {
			spec:   `{parameters: [{name: S, sensitive: true}, {name: K}], virtualMachine: {spec: {template: {spec: {domain: {"${K}": {x: "${S}"}}}}}}}`,
			values: map[string]string{"S": secret, "K": "memory"},
		},
		"a value as a key inside a field that is named by a parameter": {
			spec:   `{parameters: [{name: S, sensitive: true}, {name: K}], virtualMachine: {spec: {template: {spec: {domain: {"${K}": {"${S}": 1}}}}}}}`,
			values: map[string]string{"S": secret, "K": "memory"},
		},
		"a field that a sensitive value names, with the wrong content": {
			spec:   `{parameters: [{name: S, sensitive: true}, {name: V}], virtualMachine: {spec: {template: {spec: {networks: [{name: a, "${S}": "${{V}}"}]}}}}}`,
			values: map[string]string{"S": "multus", "V": `{"hunter2":1}`},
		},
		"a value as a name of objects that becomes the same": {spec: `{parameters: [{name: S, sensitive: true}, {name: T}], objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${T}"}}, {apiVersion: v1, kind: Secret, metadata: {name: "${S}"}}], virtualMachine: {}}`, values: map[string]string{"S": secret, "T": secret}},
		"a value as a key of an object that collides":        {spec: `{parameters: [{name: S, sensitive: true}, {name: T}], objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {"${S}": a, "${T}": b}}], virtualMachine: {}}`, values: map[string]string{"S": secret, "T": secret}},
		"an encoded value in a quantity":                     {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {spec: {template: {spec: {domain: {memory: {guest: "${S|base64}Gi"}}}}}}}`, values: map[string]string{"S": secret}},
		"an encoded value as a key that collides":            {spec: `{parameters: [{name: S, sensitive: true}, {name: T}], virtualMachine: {metadata: {labels: {"${S|base64}": a, "${T}": b}}}}`, values: map[string]string{"S": secret, "T": base64Secret}},
		"an encoded value as a field that is none":           {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {spec: {template: {spec: {domain: {"${S|base64}": 1}}}}}}`, values: map[string]string{"S": secret}},
		"a value with a control character":                   {spec: `{parameters: [{name: S, sensitive: true}], virtualMachine: {}}`, values: map[string]string{"S": secret + "\n"}},
		"a default with a control character":                 {spec: `{parameters: [{name: S, sensitive: true, value: "hunter2\n"}], virtualMachine: {}}`},
		"a name that contradicts a value": {
			spec:   `{parameters: [{name: S, sensitive: true}], virtualMachine: {metadata: {name: "vm-${S}"}}}`,
			values: map[string]string{"S": secret}, vmName: "vm-x",
		},
		"a value that is too large": {
			spec:   `{parameters: [{name: S, sensitive: true}], virtualMachine: {metadata: {name: "${S}"}}}`,
			values: map[string]string{"S": strings.Repeat(secret, 200_000)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.spec)
			var err error
			if tc.vmName == "" {
				_, err = render(object, tc.values)
			} else {
				_, err = compile(t, tc.spec).BindName(tc.vmName, tc.values)
			}
			all := causes(t, err)
			if all == nil {
				t.Fatal("got no error, so nothing was tested")
			}
			var invalid *template.InvalidError
			errors.As(err, &invalid)
			status, _ := json.Marshal(apierrors.NewInvalid(schema.GroupKind{Kind: "VirtualMachine"}, "x", invalid.Causes).Status())
			values, _ := json.Marshal(invalid.Causes)
			for what, text := range map[string]string{"error": err.Error(), "status": string(status), "causes": string(values)} {
				if strings.Contains(text, secret) || strings.Contains(text, base64Secret) {
					t.Errorf("the %s holds the value: %s", what, text)
				}
			}
		})
	}
}

func TestNoWarningHoldsASensitiveValue(t *testing.T) {
	compiled := compile(t, `
parameters: [{name: S, value: hunter2, sensitive: true}]
virtualMachine: {metadata: {labels: {a: "${S}", "${S}": b}}, spec: {running: "${{S}}"}}
`)
	warnings := strings.Join(compiled.Warnings(), "\n")
	if warnings == "" || strings.Contains(warnings, "hunter2") {
		t.Errorf("got %s, want warnings without the value", warnings)
	}
}
