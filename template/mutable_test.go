package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

func TestMutableParametersOfWhatStays(t *testing.T) {
	const at = `spec.parameters[0].mutable: Invalid value: true: `
	whole := func(parameter, vm, more string) string {
		return `{parameters: [{name: A, mutable: true` + parameter + `}, {name: B}], virtualMachine: ` + vm + more + `}`
	}
	spec := func(content string) string {
		return `{spec: {template: {spec: {domain: {devices: {}}, ` + content + `}}}}`
	}
	for name, tc := range map[string]struct {
		template string
		want     []string
	}{
		"a scalar":                             {template: whole("", spec(`hostname: "${A}-${B}"`), "")},
		"an inserted value":                    {template: whole("", spec(`nodeSelector: "${{A}}"`), "")},
		"a key":                                {template: whole("", spec(`nodeSelector: {"${A}": x}`), "")},
		"labels and annotations":               {template: whole("", `{metadata: {labels: {a: "${A}"}, annotations: {b: "${A}"}}, spec: {template: {spec: {domain: {devices: {}}}}}}`, "")},
		"all of the labels":                    {template: whole("", `{metadata: {labels: "${{A}}"}, spec: {template: {spec: {domain: {devices: {}}}}}}`, "")},
		"an instance type":                     {template: whole("", `{spec: {instancetype: {name: "${A}"}, template: {spec: {domain: {devices: {}}}}}}`, "")},
		"the message":                          {template: whole("", spec(``), `, message: "${A}"`)},
		"one that is used nowhere":             {template: whole("", spec(``), "")},
		"one that is generated":                {template: whole(`, generate: expression, from: "[a-z]{3}"`, spec(`hostname: "${A}"`), ""), want: []string{at + `a mutable parameter takes no generate`}},
		"one that is sensitive":                {template: whole(`, sensitive: true`, spec(`hostname: "${A}"`), ""), want: []string{at + `a mutable parameter must not be sensitive: its value is stored with the VirtualMachine`}},
		"the name":                             {template: whole("", `{metadata: {name: "${A}"}, spec: {template: {spec: {domain: {devices: {}}}}}}`, ""), want: []string{at + `a mutable parameter must not be part of the name or another field that identifies the VirtualMachine`}},
		"the namespace":                        {template: whole("", `{metadata: {namespace: "${A}"}, spec: {template: {spec: {domain: {devices: {}}}}}}`, ""), want: []string{at + `a mutable parameter must not be part of the name or another field that identifies the VirtualMachine`}},
		"the run strategy":                     {template: whole("", `{spec: {runStrategy: "${A}", template: {spec: {domain: {devices: {}}}}}}`, ""), want: []string{at + `a mutable parameter must not be part of spec.runStrategy or spec.running, which starting and stopping change`}},
		"whether it runs":                      {template: whole("", `{spec: {running: "${{A}}", template: {spec: {domain: {devices: {}}}}}}`, ""), want: []string{at + `a mutable parameter must not be part of spec.runStrategy or spec.running, which starting and stopping change`}},
		"the size of a disk":                   {template: whole("", `{spec: {dataVolumeTemplates: [{metadata: {name: d}, spec: {source: {blank: {}}, storage: {resources: {requests: {storage: "${A}"}}}}}], template: {spec: {domain: {devices: {}}}}}}`, ""), want: []string{at + `a mutable parameter must not be part of spec.dataVolumeTemplates, whose disks are created once`}},
		"an image":                             {template: whole("", spec(`volumes: [{name: root, containerDisk: {image: "registry.example/a:${A}"}}]`), ""), want: []string{at + `a mutable parameter must not be part of the source of a disk`}},
		"a volume that it could replace":       {template: whole("", spec(`volumes: "${{A}}"`), ""), want: []string{at + `a mutable parameter must not be part of the source of a disk`}},
		"the name of an item":                  {template: whole("", spec(`networks: [{name: "net-${A}", pod: {}}]`), ""), want: []string{at + `a mutable parameter must not be part of the name of an item of a list`}},
		"another object":                       {template: whole("", `{metadata: {name: "${B}"}, spec: {template: {spec: {domain: {devices: {}}}}}}`, `, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: "${B}"}, data: {a: "${A}"}}]`), want: []string{at + `a mutable parameter must not be part of another object of the template, which is created once`}},
		"user data that moves into a Secret":   {template: whole("", `{metadata: {name: "${B}"}, spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: init, cloudInitNoCloud: {userData: "role: ${A}"}}]}}}}`, `, secretize: true`), want: []string{at + `a mutable parameter must not be part of another object of the template, which is created once`}},
		"user data that stays, and an item":    {template: whole("", spec(`volumes: [{name: init, cloudInitNoCloud: {userData: "role: ${A}"}}]`), "")},
		"the name in two places, one of which": {template: whole("", `{metadata: {name: "${A}"}, spec: {runStrategy: "${A}", template: {spec: {domain: {devices: {}}}}}}`, ""), want: []string{at + `a mutable parameter must not be part of the name or another field that identifies the VirtualMachine`, at + `a mutable parameter must not be part of spec.runStrategy or spec.running, which starting and stopping change`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template.Compile(parse(t, tc.template))
			if diff := cmp.Diff(tc.want, causes(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMutable(t *testing.T) {
	compiled := compile(t, `{parameters: [{name: C, mutable: true}, {name: B}, {name: A, mutable: true}], virtualMachine: {spec: {template: {spec: {hostname: "${A}${B}${C}", domain: {devices: {}}}}}}}`)
	if diff := cmp.Diff([]string{"A", "C"}, compiled.Mutable()); diff != "" {
		t.Error(diff)
	}
}

func TestValue(t *testing.T) {
	compiled := compile(t, `{parameters: [{name: PLAIN}, {name: SIZE, value: "2", type: int, maximum: 8}, {name: NEEDED, required: true}],
virtualMachine: {spec: {template: {spec: {hostname: "${PLAIN}${SIZE}${NEEDED}", domain: {devices: {}}}}}}}`)
	for name, tc := range map[string]struct {
		parameter, value string
		given            bool
		want, cause      string
	}{
		"a value":                       {parameter: "PLAIN", value: "x", given: true, want: "x"},
		"none":                          {parameter: "PLAIN"},
		"an empty one":                  {parameter: "PLAIN", given: true},
		"the default":                   {parameter: "SIZE", want: "2"},
		"another than the default":      {parameter: "SIZE", value: "8", given: true, want: "8"},
		"one that is too large":         {parameter: "SIZE", value: "9", given: true, want: "9", cause: `parameters[SIZE]: Invalid value: "9": must be at most 8`},
		"an empty one with a default":   {parameter: "SIZE", given: true, cause: `parameters[SIZE]: Invalid value: "": must be an integer`},
		"none of one that is required":  {parameter: "NEEDED", cause: `parameters[NEEDED]: Required value: the template has no value for it`},
		"one that is not declared":      {parameter: "OTHER", value: "secret", given: true, cause: `parameters: Invalid value: "OTHER": the template has no such parameter`},
		"an empty one that is required": {parameter: "NEEDED", given: true, cause: `parameters[NEEDED]: Required value: the template has no value for it`},
	} {
		t.Run(name, func(t *testing.T) {
			got, cause := compiled.Value(tc.parameter, tc.value, tc.given)
			text := ""
			if cause != nil {
				text = cause.Error()
			}
			if got != tc.want || text != tc.cause {
				t.Errorf("%q, %q", got, text)
			}
		})
	}
}
