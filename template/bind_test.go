package template_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

func TestBind(t *testing.T) {
	for name, tc := range map[string]struct {
		parameters string
		values     map[string]string
		want       string // what the message "<${A}><${B}>" becomes
		wantCauses []string
	}{
		"defaults fill what is not given": {
			parameters: `[{name: A, value: x}, {name: B, value: "y"}]`,
			values:     map[string]string{"B": "z"},
			want:       "<x><z>",
		},
		"optional parameters without a value are empty": {
			parameters: `[{name: A}, {name: B, type: int, minimum: 1, enum: ["1"], pattern: "1"}]`,
			want:       "<><>",
		},
		"an empty value counts as none where there is no default": {
			parameters: `[{name: A, type: int}, {name: B, pattern: "x+"}]`,
			values:     map[string]string{"A": "", "B": ""},
			want:       "<><>",
		},
		"an empty value replaces a default that has no rules": {
			parameters: `[{name: A, value: x}, {name: B}]`,
			values:     map[string]string{"A": ""},
			want:       "<><>",
		},
		"an empty value is no way around the rules of a parameter that has a default": {
			parameters: `[{name: A, value: x, enum: [x, z]}, {name: B, value: "1", type: int}]`,
			values:     map[string]string{"A": "", "B": ""},
			wantCauses: []string{
				`parameters[A]: Unsupported value: "": must be one of "x", "z"`,
				`parameters[B]: Invalid value: "": must be an integer`,
			},
		},
		"what is missing is generated": {
			parameters: `[{name: A, generate: expression, from: "a-[a-c]{4}"}, {name: B, generate: expression, from: "[x-z]{2}!"}]`,
			want:       "<a-abca><yz!>",
		},
		"a given value replaces a generated one": {
			parameters: `[{name: A, generate: expression, from: "[a-c]{4}"}, {name: B, generate: expression, from: "[x-z]{2}"}]`,
			values:     map[string]string{"A": "mine"},
			want:       "<mine><xy>",
		},
		"an empty value asks for a generated one": {
			parameters: `[{name: A, generate: expression, from: "[a-c]{4}"}, {name: B}]`,
			values:     map[string]string{"A": ""},
			want:       "<abca><>",
		},
		"a default keeps the generator from running": {
			parameters: `[{name: A, value: x, generate: expression, from: "[a-c]{4}"}, {name: B}]`,
			want:       "<x><>",
		},
		"required parameters need a value": {
			parameters: `[{name: B, required: true}, {name: A, required: true}]`,
			values:     map[string]string{"A": ""},
			wantCauses: []string{
				`parameters[A]: Required value: the template has no value for it`,
				`parameters[B]: Required value: the template has no value for it`,
			},
		},
		"a required parameter is content with a default or a generator, but not with nothing": {
			parameters: `[{name: A, required: true, value: x}, {name: B, required: true, generate: expression, from: "[a-c]{1}"}]`,
			values:     map[string]string{"A": "", "B": ""},
			wantCauses: []string{`parameters[A]: Required value: the template has no value for it`},
		},
		"unknown parameters are named with what was meant, and without their values": {
			parameters: `[{name: A}, {name: PASSWORD, sensitive: true}, {name: B}]`,
			values:     map[string]string{"PASWORD": "hunter2", "password": "hunter2", "OTHER": "hunter2"},
			wantCauses: []string{
				`parameters[OTHER]: Invalid value: the template has no such parameter`,
				`parameters[PASWORD]: Invalid value: the template has no such parameter; did you mean PASSWORD?`,
				`parameters[password]: Invalid value: the template has no such parameter; did you mean PASSWORD?`,
			},
		},
		"every rule is checked": {
			parameters: `
- {name: A, type: int, minimum: -3, maximum: 8}
- {name: B, type: int, minimum: 3, maximum: 8}
- {name: C, type: bool}
- {name: D, type: base64}
- {name: E, pattern: "[a-z]+"}
- {name: F, enum: [small, large]}
- {name: G, type: int}
`,
			values: map[string]string{"A": "-4", "B": "9", "C": "True", "D": "YWI", "E": "abc1", "F": "medium", "G": "0x10"},
			wantCauses: []string{
				`parameters[A]: Invalid value: "-4": must be at least -3`,
				`parameters[B]: Invalid value: "9": must be at most 8`,
				`parameters[C]: Invalid value: "True": must be true or false`,
				`parameters[D]: Invalid value: "YWI": must be base64 in the standard encoding, with padding and in one line`,
				`parameters[E]: Invalid value: "abc1": must match [a-z]+ as a whole`,
				`parameters[F]: Unsupported value: "medium": must be one of "small", "large"`,
				`parameters[G]: Invalid value: "0x10": must be an integer`,
			},
		},
		"values that keep the rules are taken as they are": {
			parameters: `
- {name: A, type: int, minimum: -3, pattern: "-?\\d+", enum: ["-3", "7"]}
- {name: B, type: base64}
- {name: C, type: bool}
- {name: D, type: string, pattern: "a|ab"}
- {name: E, type: int, maximum: 9223372036854775807}
`,
			values: map[string]string{"A": "-3", "B": "YWI=", "C": "false", "D": "ab", "E": "-99999999999999999999999999"},
			want:   "<-3><YWI=>",
		},
		"integers of any size are compared with the bounds": {
			parameters: `[{name: A, type: int, minimum: -5, maximum: 5}, {name: B, type: int, minimum: -5, maximum: 5}]`,
			values:     map[string]string{"A": "99999999999999999999999999", "B": "-99999999999999999999999999"},
			wantCauses: []string{
				`parameters[A]: Invalid value: "99999999999999999999999999": must be at most 5`,
				`parameters[B]: Invalid value: "-99999999999999999999999999": must be at least -5`,
			},
		},
		"a pattern is anchored and sees one text, whatever its lines": {
			parameters: `[{name: A, pattern: "a"}, {name: B, pattern: "(?m)^b$", multiline: true}]`,
			values:     map[string]string{"A": "xa", "B": "a\nb"},
			wantCauses: []string{
				`parameters[A]: Invalid value: "xa": must match a as a whole`,
				"parameters[B]: Invalid value: \"a\\nb\": must match (?m)^b$ as a whole",
			},
		},
		"a long offending value is cut": {
			parameters: `[{name: A, enum: [x]}, {name: B}]`,
			values:     map[string]string{"A": strings.Repeat("é", 100)},
			wantCauses: []string{`parameters[A]: Unsupported value: "` + strings.Repeat("é", 64) + `…": must be one of "x"`},
		},
		"a long list of values is cut": {
			parameters: `[{name: A, enum: ["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17","18"]}, {name: B}]`,
			values:     map[string]string{"A": "19"},
			wantCauses: []string{`parameters[A]: Unsupported value: "19": must be one of "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16" and 2 more`},
		},
		"what a generator makes is held to the rules, too": {
			parameters: `[{name: A, generate: expression, from: "[a-c]{4}", pattern: "[0-9]+"}, {name: B, generate: expression, from: "[a-c]{4}", enum: [x], sensitive: true}]`,
			wantCauses: []string{
				`spec.parameters[0].from: Invalid value: "abca": what it generated must match [0-9]+ as a whole`,
				`spec.parameters[1].from: Invalid value: what it generated must be one of the values that the template lists`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := "message: <${A}><${B}>\nvirtualMachine: {}\nparameters: " + tc.parameters
			rendered, err := render(parse(t, spec), tc.values, template.WithRandom(counting{}))
			if diff := cmp.Diff(tc.wantCauses, causes(t, err)); diff != "" {
				t.Fatalf("causes (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, rendered.Message()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBindPassesOnThatRandomnessFailed(t *testing.T) {
	failure := errors.New("the well has run dry")
	compiled := compile(t, `{parameters: [{name: A, generate: expression, from: "[a-z]{4}"}], virtualMachine: {}}`, template.WithRandom(iotest.ErrReader(failure)))

	_, err := compiled.Bind(nil)
	if !errors.Is(err, failure) {
		t.Errorf("got %v, want the error of the source", err)
	}
	var invalid *template.InvalidError
	if errors.As(err, &invalid) {
		t.Error("got an InvalidError, but neither the template nor the values are at fault")
	}
}

func TestAccepts(t *testing.T) {
	compiled := compile(t, `
parameters: [{name: CORES, type: int, maximum: 8, value: "1"}, {name: TIER, required: true, enum: [front, back]}, {name: NOTE}]
virtualMachine: {metadata: {generateName: a-}, spec: {template: {spec: {}}}}`)
	for value, want := range map[[2]string]bool{
		{"CORES", "8"}: true, {"CORES", "9"}: false, {"CORES", ""}: false, {"TIER", "front"}: true, {"TIER", "side"}: false, {"TIER", ""}: false,
		{"NOTE", ""}: true, {"NOTE", "a\nb"}: false, {"MISSING", "x"}: false,
	} {
		if got := compiled.Accepts(value[0], value[1]); got != want {
			t.Errorf("%s accepts %q: %t", value[0], value[1], got)
		}
	}
}
