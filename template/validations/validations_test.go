package validations_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template/validations"
)

func TestParseTellsWhatIsWrongAndWhere(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{name: "nothing", text: " \n"},
		{name: "no rules", text: "[]"},
		{name: "a rule of each kind", text: `[
			{"name": "a", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "message": "m", "min": 1073741824, "max": "jsonpath::.spec.domain.memory.maxGuest", "valid": "jsonpath::.spec.domain.memory", "justWarning": true},
			{"name": "b", "rule": "string", "path": "jsonpath::$.spec.hostname", "message": "m", "minLength": 1, "maxLength": 15},
			{"name": "c", "rule": "enum", "path": "jsonpath::.spec.domain.devices.disks[*].disk.bus", "message": "m", "values": ["virtio", "scsi"]},
			{"name": "d", "rule": "regex", "path": "jsonpath::['spec'].volumes[0].name", "message": "m", "regex": "^root"}]`},
		{name: "no JSON", text: "[\n  {\"name\": }\n]", want: []string{"2:12: is no JSON: invalid character '}' looking for beginning of value"}},
		{name: "it ends too early", text: `[{"name": "a"`, want: []string{"1:14: is no JSON: it ends too early"}},
		{name: "something follows", text: "[] []", want: []string{"1:4: something follows the list"}},
		{name: "no list", text: `{"name": "a"}`, want: []string{"1:1: must be a list of rules"}},
		{name: "no object", text: "[\n7]", want: []string{"2:1: [0]: must be an object"}},
		{
			name: "a rule of nothing", text: "[\n {}]",
			want: []string{"2:2: [0].name: is missing", "2:2: [0].rule: is missing", "2:2: [0].message: is missing", "2:2: [0].path: is missing"},
		},
		{
			name: "fields of other types", text: `[{"name": 7, "rule": "", "message": null, "path": [], "justWarning": "yes"}]`,
			want: []string{
				"1:11: [0].name: must be text", "1:22: [0].rule: must not be empty", "1:2: [0].message: is missing", "1:51: [0].path: must be text",
				"1:70: [0].justWarning: must be true or false",
			},
		},
		{
			name: "another kind", text: `[{"name": "a", "rule": "float", "message": "m", "path": "jsonpath::.a"}]`,
			want: []string{`1:24: [0].rule: must be one of integer, string, enum, regex, and is "float"`},
		},
		{
			name: "fields of another kind", text: `[{"name": "a", "rule": "enum", "message": "m", "path": "jsonpath::.a", "values": ["x"], "min": 1}]`,
			want: []string{"1:96: [0].min: a rule of kind enum has no such field"},
		},
		{
			name: "two of a name", text: `[{"name": "a", "rule": "string", "message": "m", "path": "jsonpath::.a"}, {"name": "a", "rule": "string", "message": "m", "path": "jsonpath::.a"}]`,
			want: []string{`1:75: [1].name: another rule is called "a" as well`},
		},
		{
			name: "bounds", text: `[{"name": "a", "rule": "integer", "message": "m", "path": "jsonpath::.a", "min": 1.5, "max": "many"}, {"name": "b", "rule": "string", "message": "m", "path": "jsonpath::.a", "minLength": -1, "maxLength": "7"}, {"name": "c", "rule": "integer", "message": "m", "path": "jsonpath::.a", "min": "jsonpath::a"}]`,
			want: []string{
				"1:82: [0].min: must be an integer, a quantity or a path", "1:94: [0].max: must be an integer, a quantity or a path",
				"1:188: [1].minLength: must be an integer that is not negative", "1:205: [1].maxLength: must be an integer that is not negative",
				"1:291: [2].min: character 1 of the path: want . or [",
			},
		},
		{
			name: "values and expressions", text: `[{"name": "a", "rule": "enum", "message": "m", "path": "jsonpath::.a", "values": []}, {"name": "b", "rule": "enum", "message": "m", "path": "jsonpath::.a", "values": ["x", 1]}, {"name": "c", "rule": "enum", "message": "m", "path": "jsonpath::.a"}, {"name": "d", "rule": "regex", "message": "m", "path": "jsonpath::.a", "regex": "("}]`,
			want: []string{
				"1:82: [0].values: must be a list of texts, with one at least", "1:173: [1].values[1]: must be text",
				"1:178: [2].values: must be a list of texts, with one at least",
				"1:329: [3].regex: must be a regular expression in RE2 syntax: error parsing regexp: missing closing ): `(`",
			},
		},
		{
			name: "paths", text: `[
{"name": "a", "rule": "string", "message": "m", "path": ".spec"},
{"name": "b", "rule": "string", "message": "m", "path": "jsonpath::.spec..bus"},
{"name": "c", "rule": "string", "message": "m", "path": "jsonpath::.spec[?(@.x)]"},
{"name": "d", "rule": "string", "message": "m", "path": "jsonpath::.spec[0"},
{"name": "e", "rule": "string", "message": "m", "path": "jsonpath::.sp ec"},
{"name": "f", "rule": "string", "message": "m", "path": "jsonpath::.spec", "valid": "jsonpath::.a[-1]"}]`,
			want: []string{
				"2:57: [0].path: must begin with jsonpath::",
				"3:57: [1].path: character 6 of the path: a rule cannot search at any depth (..)",
				"4:57: [2].path: character 6 of the path: want [*], [INDEX] or ['KEY']",
				"5:57: [3].path: character 6 of the path: the bracket is not closed",
				"6:57: [4].path: character 1 of the path: want the name of a field",
				"7:85: [5].valid: character 3 of the path: want [*], [INDEX] or ['KEY']",
			},
		},
		{name: "too long", text: strings.Repeat(" ", validations.MaxBytes) + "[]", want: []string{"1:1: the annotation must be at most 131072 bytes, and is 131074"}},
		{name: "too many", text: "[" + strings.Repeat("{},", validations.MaxRules) + "{}]", want: []string{"1:1: there must be at most 256 rules, and there are 257"}},
		{name: "too deep", text: strings.Repeat("[", 20), want: []string{"1:10: is nested too deep"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := validations.Parse(tc.text)
			var got []string
			var invalid *validations.InvalidError
			if errors.As(err, &invalid) {
				for _, problem := range invalid.Problems {
					got = append(got, problem.String())
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const template = `{"spec": {"hostname": "web", "domain": {"cpu": {"cores": 2}, "memory": {"guest": "2Gi", "maxGuest": "4Gi"},
	"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "data", "disk": {"bus": "sata"}}], "rng": {}}}}}`

func TestEvaluate(t *testing.T) {
	for _, tc := range []struct {
		name, rule string
		want       string
	}{
		{name: "an integer within its bounds", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.cpu.cores", "min": 1, "max": 4`},
		{name: "too few", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.cpu.cores", "min": 4`, want: "2 is less than 4"},
		{name: "too many", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.cpu.cores", "max": 1`, want: "2 is more than 1"},
		{name: "a quantity", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 2147483648, "max": "2Gi"`},
		{name: "a quantity that is too small", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 2147483649`, want: "2Gi is less than 2147483649"},
		{name: "a bound of the machine", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "max": "jsonpath::.spec.domain.memory.maxGuest"`},
		{name: "above a bound of the machine", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.memory.maxGuest", "max": "jsonpath::.spec.domain.memory.guest"`, want: "4Gi is more than 2147483648"},
		{name: "a bound that is not there", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.cpu.cores", "max": "jsonpath::.spec.domain.cpu.most"`, want: "jsonpath::.spec.domain.cpu.most is no integer, with which to compare"},
		{name: "no integer", rule: `"rule": "integer", "path": "jsonpath::.spec.hostname"`, want: "web is no integer"},
		{name: "a text of the right length", rule: `"rule": "string", "path": "jsonpath::.spec.hostname", "minLength": 3, "maxLength": 3`},
		{name: "too short", rule: `"rule": "string", "path": "jsonpath::.spec.hostname", "minLength": 4`, want: "web is shorter than 4 characters"},
		{name: "too long", rule: `"rule": "string", "path": "jsonpath::.spec.hostname", "maxLength": 2`, want: "web is longer than 2 characters"},
		{name: "no text", rule: `"rule": "string", "path": "jsonpath::.spec.domain.cpu.cores"`, want: "2 is no text"},
		{name: "all of a list are listed", rule: `"rule": "enum", "path": "jsonpath::.spec.domain.devices.disks[*].disk.bus", "values": ["virtio", "sata"]`},
		{name: "one of a list is not", rule: `"rule": "enum", "path": "jsonpath::.spec.domain.devices.disks[*].disk.bus", "values": ["virtio", "scsi"]`, want: "sata is none of virtio, scsi"},
		{name: "numbers can be listed", rule: `"rule": "enum", "path": "jsonpath::.spec.domain.cpu.cores", "values": ["2"]`},
		{name: "an object is none of a list", rule: `"rule": "enum", "path": "jsonpath::.spec.domain", "values": ["2"]`, want: "what is there is none of 2"},
		{name: "an expression matches anywhere", rule: `"rule": "regex", "path": "jsonpath::.spec.domain.devices.disks[0].name", "regex": "oo"`},
		{name: "an expression does not match", rule: `"rule": "regex", "path": "jsonpath::.spec.domain.devices.disks[1].name", "regex": "^root$"`, want: "data does not match ^root$"},
		{name: "nothing there", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.cpu.sockets", "min": 1`, want: "there is no such field"},
		{name: "nothing there, and nothing asked", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.cpu.sockets", "min": 1, "valid": "jsonpath::.spec.domain.cpu.sockets"`},
		{name: "asked where something else is", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.cpu.sockets", "min": 1, "valid": "jsonpath::.spec.domain.cpu"`, want: "there is no such field"},
		{name: "an empty object is there", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.cpu.sockets", "min": 1, "valid": "jsonpath::.spec.domain.devices.rng"`, want: "there is no such field"},
		{name: "any key", rule: `"rule": "integer", "path": "jsonpath::.spec.domain.memory.*", "min": "3Gi"`, want: "2Gi is less than 3221225472"},
		{name: "an index that is not there", rule: `"rule": "string", "path": "jsonpath::.spec.domain.devices.disks[7].name"`, want: "there is no such field"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rules, err := validations.Parse(`[{"name": "r", "message": "told", ` + tc.rule + `}]`)
			if err != nil {
				t.Fatal(err)
			}
			var want []validations.Violation
			if tc.want != "" {
				_, path, _ := strings.Cut(tc.rule, `"path": "jsonpath::`)
				path, _, _ = strings.Cut(path, `"`)
				field := "spec.template" + strings.Replace(path, ".*", "[*]", 1)
				want = []validations.Violation{{Rule: "r", Message: "told", Field: field, Detail: tc.want, Missing: tc.want == "there is no such field"}}
			}
			for _, exact := range []bool{true, false} {
				decoder := json.NewDecoder(strings.NewReader(template))
				if exact {
					decoder.UseNumber()
				}
				var decoded any
				if err := decoder.Decode(&decoded); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, validations.Evaluate(rules, decoded)); diff != "" {
					t.Errorf("json.Number %v (-want +got):\n%s", exact, diff)
				}
			}
		})
	}
}

func TestAWarningIsMarked(t *testing.T) {
	rules, err := validations.Parse(`[{"name": "r", "message": "told", "rule": "integer", "path": "jsonpath::.a", "justWarning": true}]`)
	if err != nil {
		t.Fatal(err)
	}
	got := validations.Evaluate(rules, map[string]any{"a": "x"})
	if len(got) != 1 || !got[0].Warning || got[0].String() != "r: told (x is no integer)" {
		t.Errorf("%+v", got)
	}
}

func TestSkipped(t *testing.T) {
	for value, want := range map[any]bool{"true": true, "": true, "false": false} {
		if got := validations.Skipped(map[string]any{validations.AnnotationSkip: value}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	if validations.Skipped(nil) {
		t.Error("without the annotation")
	}
}

func TestQuantities(t *testing.T) {
	for value, want := range map[string]string{
		"1.5Gi": "1610612736", "1.50Gi": "1610612736", "1536Mi": "1610612736", "0.5Gi": "536870912", "2Gi": "2147483648", "2G": "2000000000", "1.5k": "1500", "3000m": "3", "-1.5Ki": "-1536",
		"7": "7", "1.5": "", "1500m": "", "0.3Ki": "", "1.5e3": "", "": "",
	} {
		bounds := ""
		if want != "" {
			bounds = fmt.Sprintf(`, "min": %[1]q, "max": %[1]q`, want)
		}
		rules, err := validations.Parse(`[{"name": "r", "message": "told", "rule": "integer", "path": "jsonpath::.a"` + bounds + `}]`)
		if err != nil {
			t.Fatal(err)
		}
		if broken := validations.Evaluate(rules, map[string]any{"a": value}); len(broken) == 0 != (want != "") {
			t.Errorf("%s is to be %q: %v", value, want, broken)
		}
	}
}

func TestHostileQuantitiesTakeNoTime(t *testing.T) {
	rules, err := validations.Parse(`[{"name": "r", "message": "told", "rule": "integer", "path": "jsonpath::.a"}]`)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"1e-100000000", "1e999999999", strings.Repeat("9", 1<<20), "1.5", "0.5Gi", "2Ei", "NaN"} {
		validations.Evaluate(rules, map[string]any{"a": value})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`[{"name": "a", "rule": "integer", "path": "jsonpath::.spec[*]['x'].y", "message": "m", "min": "1Gi"}]`)
	f.Add("[{]")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := validations.Parse(text)
		var invalid *validations.InvalidError
		if err != nil && (!errors.As(err, &invalid) || len(invalid.Problems) == 0) {
			t.Fatalf("%v", err)
		}
		if invalid != nil {
			for _, p := range invalid.Problems {
				if p.Row < 1 || p.Column < 1 || p.Row > 1+strings.Count(text, "\n") || p.Column > len(text)+1 {
					t.Errorf("there is no place %d:%d", p.Row, p.Column)
				}
			}
		}
		var decoded any
		if err := json.Unmarshal([]byte(template), &decoded); err != nil {
			t.Fatal(err)
		}
		validations.Evaluate(rules, decoded)
	})
}
