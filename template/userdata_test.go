package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParametersInYAMLBringAWarning(t *testing.T) {
	const in = "spec.virtualMachine.spec.template.spec.volumes[0].cloudInitNoCloud.userData: "
	asItIs := func(line int, name string) string {
		return fmt.Sprintf("%sline %d: YAML reads ': ', ' #' and quotes in %s: write ${%s|yaml} as the whole value, without quotes, or give it a pattern", in, line, name, name)
	}
	lineBreak := func(line int, name string) string {
		return fmt.Sprintf("%sline %d: a line break in %s ends its block of text: write ${%s|yaml} as a whole value elsewhere, or declare it without multiline", in, line, name, name)
	}
	for name, tc := range map[string]struct {
		parameter string // but for the name
		text      string
		want      []string
	}{
		"a plain value":                          {text: "#cloud-config\nuser: a\npassword: ${A}\n", want: []string{asItIs(3, "A")}},
		"one warning for each parameter":         {text: "a: ${A}\nb: ${A}\nc: ${B}${A}\n", want: []string{asItIs(1, "A"), asItIs(3, "B")}},
		"between double quotes":                  {text: `a: "${A}"`, want: []string{asItIs(1, "A")}},
		"a word of the shell in a plain value":   {text: "runcmd:\n- echo ${A|sh}\n", want: []string{asItIs(2, "A")}},
		"encoders":                               {text: "a: ${A|yaml}\nb: ${A|json}\nc: ${A|base64}\n"},
		"a block of text":                        {text: "a:\n- b: |\n    ${A}\n\n    x: ${A}\n"},
		"a block of text with indicators":        {text: "a:\n- b: >2-\n    ${A}\n- |+\n ${A}\n"},
		"what follows a block of text":           {text: "a:\n- b: |\n    x\n  c: ${A}\n", want: []string{asItIs(4, "A")}},
		"a comment":                              {text: "a: b\n# ${A}\n"},
		"a script":                               {text: "#!/bin/sh\necho ${A}\n"},
		"a parameter that gives the document":    {text: "${A}"},
		"a parameter that gives it as JSON":      {text: "${{A}}"},
		"a list of values":                       {parameter: "enum: [a, b]", text: "a: ${A}\n"},
		"an integer":                             {parameter: "type: int", text: "a: ${A}\n"},
		"a pattern without what YAML has":        {parameter: "pattern: '[a-z0-9.-]+'", text: "a: ${A}\n"},
		"a pattern with what YAML has":           {parameter: "pattern: '[a-z]+(: .*)?'", text: "a: ${A}\n", want: []string{asItIs(1, "A")}},
		"a pattern for what is between quotes":   {parameter: `pattern: '[ -!#-\[\]-~]+'`, text: "a: \"it's ${A}\"\nb: '\"${A}'\n", want: []string{asItIs(2, "A")}},
		"several lines":                          {parameter: "multiline: true", text: "a: ${A}\n", want: []string{asItIs(1, "A")}},
		"several lines in a block of text":       {parameter: "multiline: true", text: "a: |\n  ${A}\n", want: []string{lineBreak(2, "A")}},
		"several lines of the shell":             {parameter: "multiline: true", text: "a: |\n  echo ${A|sh}\n", want: []string{lineBreak(2, "A")}},
		"several lines with an encoder for YAML": {parameter: "multiline: true", text: "a: ${A|yaml}\nb: ${A|base64}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := mustMarshal(t, tc.text)
			compiled := compile(t, "parameters: [{name: A, "+tc.parameter+"}, {name: B}]\nvirtualMachine: {spec: {template: {spec: {volumes: [{name: a, cloudInitNoCloud: {userData: "+string(text)+"}}]}}}}")
			if diff := cmp.Diff(tc.want, compiled.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllCloudInitDataIsLookedAt(t *testing.T) {
	compiled := compile(t, `
parameters: [{name: A}, {name: V}]
virtualMachine: {spec: {template: {spec: {volumes: ["${{V}}",
  {name: a, cloudInitNoCloud: {userData: "a: ${A}", networkData: "a: ${A}"}},
  {name: b, cloudInitConfigDrive: {userData: "a: ${A}", networkData: "a: ${A}", secretRef: {name: "a${A}"}}},
  {name: c, cloudInitConfigDrive: "${{V}}"}]}}}}`)
	var places []string
	for _, warning := range compiled.Warnings() {
		place, _, _ := strings.Cut(warning, ": ")
		places = append(places, strings.TrimPrefix(place, "spec.virtualMachine.spec.template.spec."))
	}
	want := []string{"volumes[1].cloudInitNoCloud.userData", "volumes[1].cloudInitNoCloud.networkData", "volumes[2].cloudInitConfigDrive.userData", "volumes[2].cloudInitConfigDrive.networkData"}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestPlaceholdersOfAWholeMachineBringNoWarning(t *testing.T) {
	for _, spec := range []string{
		`{parameters: [{name: A}], virtualMachine: {spec: "${{A}}"}}`,
		`{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {volumes: "${{A}}"}}}}}`,
		`{virtualMachine: {spec: {template: {spec: {volumes: [{name: a, cloudInitNoCloud: {userData: "a: b"}}]}}}}}`,
	} {
		if warnings := compile(t, spec).Warnings(); len(warnings) > 0 {
			t.Errorf("%s: got %q", spec, warnings)
		}
	}
}
