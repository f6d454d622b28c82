package body_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/apiserver/body"
)

func TestOptions(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for _, tc := range []struct {
		name, body   string
		want         map[string]string
		wantTarget   string
		wantWarnings []string
		wantError    string
	}{
		{name: "nothing is an empty object", body: ""},
		{name: "white space is an empty object", body: " \n"},
		{name: "a comment is an empty object", body: "# nothing\n"},
		{name: "an empty object", body: "{}"},
		{name: "null", body: "null"},
		{name: "JSON", body: `{"parameters":{"A":"b","C":"ü \ud83d\ude00 \/"}}`, want: map[string]string{"A": "b", "C": "ü 😀 /"}},
		{name: "YAML", body: "parameters:\n  A: b\n  C: |\n    two\n    lines\n", want: map[string]string{"A": "b", "C": "two\nlines\n"}},
		{name: "YAML in flow style", body: "{parameters: {A: b}}", want: map[string]string{"A": "b"}},
		{name: "numbers and truths of JSON as they were written", body: `{"parameters":{"A":1.10,"B":123456789012345678901234567890,"C":true,"D":1e2}}`,
			want: map[string]string{"A": "1.10", "B": "123456789012345678901234567890", "C": "true", "D": "1e2"}},
		{name: "numbers, truths and dates of YAML as they were written", body: "parameters: {A: 1.10, B: 0x1F, C: yes, D: True, E: 2026-11-21, F: 1_000}",
			want: map[string]string{"A": "1.10", "B": "0x1F", "C": "yes", "D": "True", "E": "2026-11-21", "F": "1_000"}},
		{name: "null is no value", body: `{"parameters":{"A":null},"targetNamespace":null}`, want: map[string]string{"A": ""}},
		{name: "what typed clients send", body: `{"kind":"ProcessOptions","apiVersion":"subresources.template.kubevirt.io/v1alpha1","metadata":{"creationTimestamp":null},"parameters":{"A":"b"}}`, want: map[string]string{"A": "b"}},
		{name: "another namespace", body: "targetNamespace: team-a", wantTarget: "team-a"},

		{name: "an unknown field", body: "{\n  \"parameters\": {},\n  \"paramters\": {}}", wantError: `line 3, column 3: ProcessOptions has no field "paramters"; did you mean parameters?`},
		{name: "an abbreviated field", body: "params: {A: b}", wantError: `line 1, column 1: ProcessOptions has no field "params"; did you mean parameters?`},
		{name: "a field in other letters", body: "Explain: true", wantError: `line 1, column 1: ProcessOptions has no field "Explain"; did you mean explain?`},
		{name: "a target that is misspelled", body: "targetNamspace: a", wantError: `line 1, column 1: ProcessOptions has no field "targetNamspace"; did you mean targetNamespace?`},
		{name: "a dry run in the body", body: "kind: CreateOptions\ndryRun: [All]", wantError: "line 2, column 1: dryRun is a parameter of the URL: ?dryRun=All"},
		{name: "what JSON is not and YAML is", body: "{\n  \"parameters\": {\"A\": hunter2}\n}", want: map[string]string{"A": "hunter2"}},
		{name: "JSON that ends too early", body: "{\"parameters\":\n  {\"A\": \"b\"", wantError: "line 2, column 12: it ends too early"},
		{name: "JSON and something more", body: `{"parameters":{}} }`, wantError: "line 1, column 19: "},
		{name: "YAML that is malformed", body: "parameters:\n  A: b: c\n", wantError: "line 2, column 3: mapping values are not allowed in this context"},
		{name: "two documents", body: "parameters: {}\n---\nparameters: {}\n", wantError: "line 2, column 1: something follows the object"},
		{name: "a parameter twice, in YAML", body: "parameters:\n  A: b\n  A: c\n", wantError: `line 3, column 3: "A" is there twice`},
		{name: "a parameter twice, in JSON", body: `{"parameters":{"A":"b","A":"c"}}`, wantError: `line 1, column 24: "A" is there twice`},
		{name: "a list as a value", body: "parameters:\n  A: [b]\n", wantError: `line 2, column 6: the value of parameter "A" must be a string, a number, true or false, not a list`},
		{name: "a list of parameters", body: `{"parameters":[]}`, wantError: "line 1, column 15: parameters must be an object, not a list"},
		{name: "what other clients send", body: `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","parameters":{"A":"b"}}`, want: map[string]string{"A": "b"}},
		{name: "fields of other kinds", body: "kind: VirtualMachine\nspec: {a: b}\nfieldManager: me\nparameters: {A: b}", want: map[string]string{"A": "b"},
			wantWarnings: []string{`unknown field "spec"`, `unknown field "fieldManager"`}},
		{name: "explain that is a string", body: `{"explain": "true"}`, wantError: "line 1, column 13: explain must be true or false"},
		{name: "explain that is a number", body: "explain: 1", wantError: "line 1, column 10: explain must be true or false"},
		{name: "a string", body: "hello", wantError: "line 1, column 1: it must be an object"},
		{name: "an alias", body: "parameters: &p {A: b}\nmetadata: *p", wantError: "line 2, column 11: anchors and aliases are not taken here"},
		{name: "a value that looks like an alias is not shown", body: "parameters: {PASSWORD: *hunter2}", wantError: "line 1, column 1: anchors and aliases are not taken here"},
		{name: "too deep", body: `{"metadata":` + deep + "}", wantError: "it is nested too deep"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, warnings, err := body.Options([]byte(tc.body))
			if tc.wantError == "" && err != nil {
				t.Fatal(err)
			}
			if tc.wantError != "" {
				var malformed *body.Malformed
				if !errors.As(err, &malformed) || !strings.Contains(err.Error(), tc.wantError) {
					t.Fatalf("%v, want %s", err, tc.wantError)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got.Parameters); diff != "" && len(tc.want)+len(got.Parameters) > 0 {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if got.TargetNamespace != tc.wantTarget {
				t.Errorf("target %q", got.TargetNamespace)
			}
		})
	}
}

func FuzzOptions(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"parameters":{"A":1.10}}`, "parameters: {A: b}", "a: &a [*a]", "? {a: b}\n: c"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, _, err := body.Options(raw); err != nil {
			var malformed *body.Malformed
			if !errors.As(err, &malformed) || malformed.Line < 1 || malformed.Column < 1 {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestExplain(t *testing.T) {
	for text, want := range map[string]bool{"explain: true": true, `{"explain":false}`: false, "explain:": false} {
		got, _, err := body.Options([]byte(text))
		if err != nil || got.Explain != want {
			t.Errorf("%s: %v, %v", text, got.Explain, err)
		}
	}
}
