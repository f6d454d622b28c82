package template_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestControlCharactersAreRefused(t *testing.T) {
	const toDo = "which no parameter takes: remove it"
	for name, tc := range map[string]struct {
		value     string
		multiline bool
		want      string // what follows "parameters[PASSWORD]: Invalid value: "
	}{
		"a line break that begins another key": {
			value: "hunter2\nruncmd: [reboot]",
			want:  "character 8 of PASSWORD is U+000A, a line break: remove it, or declare the parameter with multiline: true",
		},
		"positions count characters and not bytes": {
			value: "é😀\n",
			want:  "character 3 of PASSWORD is U+000A, a line break: remove it, or declare the parameter with multiline: true",
		},
		"a carriage return":                     {value: "a\r", want: "character 2 of PASSWORD is U+000D, " + toDo},
		"NUL":                                   {value: "\x00", want: "character 1 of PASSWORD is U+0000, " + toDo},
		"an escape of a terminal":               {value: "\x1b[2J", want: "character 1 of PASSWORD is U+001B, " + toDo},
		"a vertical tab":                        {value: "a\vb", want: "character 2 of PASSWORD is U+000B, " + toDo},
		"DEL":                                   {value: "ab\x7f", want: "character 3 of PASSWORD is U+007F, " + toDo},
		"the first of C1":                       {value: "\u0080", want: "character 1 of PASSWORD is U+0080, " + toDo},
		"the next line of C1":                   {value: "a\u0085b", want: "character 2 of PASSWORD is U+0085, " + toDo},
		"the last of C1":                        {value: "\u009f", want: "character 1 of PASSWORD is U+009F, " + toDo},
		"a line separator":                      {value: "\u2028", want: "character 1 of PASSWORD is U+2028, " + toDo},
		"a paragraph separator":                 {value: "\u2029", want: "character 1 of PASSWORD is U+2029, " + toDo},
		"a tab":                                 {value: "a\tb"},
		"text of any script":                    {value: "é \u00a0 😀 \u00ad"},
		"several lines":                         {value: "a\n\tb\n", multiline: true},
		"a carriage return before a line break": {value: "a\r\nb", multiline: true, want: "character 2 of PASSWORD is U+000D, which no parameter takes: end lines with U+000A alone"},
		"NUL among lines":                       {value: "a\nb\x00", multiline: true, want: "character 4 of PASSWORD is U+0000, " + toDo},
		"the next line of C1 among lines":       {value: "a\u0085", multiline: true, want: "character 2 of PASSWORD is U+0085, " + toDo},
		"a line separator among lines":          {value: "a\u2028", multiline: true, want: "character 2 of PASSWORD is U+2028, " + toDo},
		"a paragraph separator among lines":     {value: "a\u2029", multiline: true, want: "character 2 of PASSWORD is U+2029, " + toDo},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sensitive := range []bool{false, true} {
				spec := fmt.Sprintf(`{parameters: [{name: PASSWORD, sensitive: %v, multiline: %v}], virtualMachine: {}}`, sensitive, tc.multiline)
				_, err := render(parse(t, spec), map[string]string{"PASSWORD": tc.value})
				var want []string
				if tc.want != "" {
					want = []string{"parameters[PASSWORD]: Invalid value: " + tc.want}
				}
				if diff := cmp.Diff(want, causes(t, err)); diff != "" {
					t.Errorf("causes (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestControlCharactersAreRefusedInDeclarations(t *testing.T) {
	for name, tc := range map[string]struct {
		parameters string
		want       []string
	}{
		"in a default": {
			parameters: `[{name: A, value: "a\nb"}]`,
			want:       []string{"spec.parameters[0].value: Invalid value: character 2 of A is U+000A, a line break: remove it, or declare the parameter with multiline: true"},
		},
		"in a listed value": {
			parameters: `[{name: A, enum: [a, "b\u2028"]}]`,
			want:       []string{"spec.parameters[0].enum[1]: Invalid value: character 2 of A is U+2028, which no parameter takes: remove it"},
		},
		"in what is generated": {
			parameters: `[{name: A, generate: expression, from: "[a-z]{3}\n"}]`,
			want:       []string{"spec.parameters[0].from: Invalid value: character 9 of A is U+000A, a line break: remove it, or declare the parameter with multiline: true"},
		},
		"multiline with another type": {
			parameters: `[{name: A, type: int, multiline: true}]`,
			want:       []string{`spec.parameters[0].type: Invalid value: "int": multiline needs type string`},
		},
		"not where the parameter is multiline": {
			parameters: `[{name: A, multiline: true, value: "a\nb"}, {name: B, type: string, multiline: true, enum: ["a\n"]}, {name: C, multiline: true, generate: expression, from: "[a-z]{3}\n"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(parse(t, "parameters: "+tc.parameters+"\nvirtualMachine: {}"), nil)
			if diff := cmp.Diff(tc.want, causes(t, err)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchRefusesControlCharacters(t *testing.T) {
	testMatch(t, map[string]matchCase{
		"a line break in a text": {
			spec:            `{parameters: [{name: A, sensitive: true}], virtualMachine: {spec: {template: {spec: {hostname: "x: ${A}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "x: a\nb: c"}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want ${A}, which does not take U+000A (character 2), got (sensitive)`},
		},
		"one that the parameter takes": {
			spec:       `{parameters: [{name: A, multiline: true}], virtualMachine: {spec: {template: {spec: {hostname: "x: ${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "x: a\nb"}}}}`,
			wantValues: map[string]string{"A": "a\nb"},
		},
		"one that JSON brought": {
			spec:       `{parameters: [{name: A}, {name: B}], virtualMachine: {metadata: {labels: "${{B}}"}, spec: {template: {spec: {hostname: "${{A}}"}}}}}`,
			vm:         `{metadata: {labels: {"a\u2028": "b\u0085\u007f"}}, spec: {template: {spec: {hostname: "a\nb"}}}}`,
			wantValues: map[string]string{"A": `"a\nb"`, "B": `{"a\u2028":"b\u0085\u007f"}`},
		},
	})
}
