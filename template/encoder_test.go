package template_test

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/template"
)

// encoded renders ${A|ENCODER} between text.
func encoded(tb testing.TB, encoder, value string) string {
	tb.Helper()
	rendered, err := render(parse(tb, `{message: "<${A|`+encoder+`}>", parameters: [{name: A, multiline: true}],
		virtualMachine: {spec: {template: {spec: {hostname: "<${A|`+encoder+`}>"}}}}}`), map[string]string{"A": value})
	if err != nil {
		tb.Fatal(err)
	}
	var vm struct {
		Spec struct {
			Template struct{ Spec struct{ Hostname string } }
		}
	}
	if err := json.Unmarshal(rendered.JSON(), &vm); err != nil {
		tb.Fatal(err)
	}
	text := vm.Spec.Template.Spec.Hostname
	if rendered.Message() != text {
		tb.Errorf("the message has %q, and the VirtualMachine %q", rendered.Message(), text)
	}
	return text[1 : len(text)-1]
}

func TestEncoders(t *testing.T) {
	for _, tc := range []struct{ value, yaml, sh, base64 string }{
		{``, `""`, `''`, ``},
		{`web-1`, `"web-1"`, `'web-1'`, `d2ViLTE=`},
		{`yes`, `"yes"`, `'yes'`, `eWVz`},
		{`a: b # c`, `"a: b # c"`, `'a: b # c'`, `YTogYiAjIGM=`},
		{`"\`, `"\"\\"`, `'"\'`, `Ilw=`},
		{`it's $HOME`, `"it's $HOME"`, `'it'\''s $HOME'`, `aXQncyAkSE9NRQ==`},
		{`'`, `"'"`, `''\'''`, `Jw==`},
		{"a\n\tb", `"a\n\tb"`, "'a\n\tb'", `YQoJYg==`},
		{"é😀", `"é😀"`, `'é😀'`, `w6nwn5iA`},
		{"\u00a0\ufeff\ufffe\uffff", `"\u00a0\ufeff\ufffe\uffff"`, "'\u00a0\ufeff\ufffe\uffff'", `wqDvu7/vv77vv78=`},
		{`${A|yaml}`, `"${A|yaml}"`, `'${A|yaml}'`, `JHtBfHlhbWx9`},
	} {
		for encoder, want := range map[string]string{"yaml": tc.yaml, "json": tc.yaml, "sh": tc.sh, "base64": tc.base64} {
			if got := encoded(t, encoder, tc.value); got != want {
				t.Errorf("%q with %s: got %s, want %s", tc.value, encoder, got, want)
			}
		}
		want := []string{tc.base64, tc.yaml, tc.sh}
		if diff := cmp.Diff(want, template.Encodings(tc.value)); diff != "" {
			t.Errorf("Encodings of %q (-want +got):\n%s", tc.value, diff)
		}
	}
}

// randomValue returns a valid value of a multiline parameter, with many characters that have a meaning in parsers.
func randomValue(random *rand.Rand) string {
	pieces := []string{"a", " ", "'", `"`, `\`, ":", " #", "\n", "\t", "-", "- ", "|", ">", "&a", "*a", "!!int", "{", "}", "[", "]", ",", "?", "%", "@", "`", "$", "$(id)", "é", "😀",
		"\u00a0", "\ufeff", "\ufffe", "\uffff", "\ufffd", "\U0001fffe", "---", "...", "<<", "null", "1", "/", `\u0041`, `'\''`, "="}
	var b strings.Builder
	for range random.IntN(12) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

func TestParsersReadEncodedValuesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		value := randomValue(random)
		inYAML, inJSON := encoded(t, "yaml", value), encoded(t, "json", value)
		for _, document := range []string{"a: " + inYAML, "a:\n  " + inYAML + " # b", "{a: " + inYAML + ", b: 1}", "? a\n: " + inYAML + "\nb: 1"} {
			var got map[string]any
			if err := yaml.Unmarshal([]byte(document), &got); err != nil || got["a"] != value {
				t.Errorf("%q: got %q (%v), want %q", document, got["a"], err, value)
			}
		}
		for _, text := range []string{inJSON, inYAML} { // what YAML 1.2 reads is a superset of JSON
			var got string
			if err := json.Unmarshal([]byte(text), &got); err != nil || got != value {
				t.Errorf("%s: got %q (%v), want %q", text, got, err, value)
			}
		}
	}
}

func TestTheShellReadsEncodedValuesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var script, want strings.Builder
	for range 500 {
		value := randomValue(random)
		script.WriteString(`printf '%s\0' ` + encoded(t, "sh", value) + "\n")
		want.WriteString(value + "\x00")
	}
	got, err := exec.Command("sh", "-c", script.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want.String(), "\x00"), strings.Split(string(got), "\x00")); diff != "" {
		t.Errorf("what the shell read (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoEncoderIsRefused(t *testing.T) {
	const (
		where = "spec.virtualMachine.spec.template.spec.volumes[0].cloudInitNoCloud.userData: Invalid value: "
		or    = "; write ${A} or ${A|ENCODER}, where ENCODER is base64, json, sh or yaml"
	)
	inUserData := func(text string) string {
		encoded := mustMarshal(t, text)
		return "\nvirtualMachine: {spec: {template: {spec: {volumes: [{name: a, cloudInitNoCloud: {userData: " + string(encoded) + "}}]}}}}"
	}
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"an unknown encoder": {
			spec: "parameters: [{name: A}]" + inUserData("#cloud-config\nuser: é\npassword: é ${A|yml}\n"),
			want: []string{where + `"${A|yml}": line 3, column 13: no such encoder` + or},
		},
		"an unknown encoder where undefined references are kept": {
			spec: "undefinedReferences: Keep\nparameters: [{name: A}]" + inUserData("${A|yml}"),
			want: []string{where + `"${A|yml}": line 1, column 1: no such encoder` + or},
		},
		"no encoder behind the bar": {
			spec: "parameters: [{name: A}]" + inUserData("x${A|}"),
			want: []string{where + `"${A|}": line 1, column 2: no such encoder` + or},
		},
		"two encoders": {
			spec: "parameters: [{name: A}]" + inUserData("${A|sh|yaml}"),
			want: []string{where + `"${A|sh|yaml}": line 1, column 1: no such encoder` + or},
		},
		"an encoder in capitals": {
			spec: "parameters: [{name: A}]" + inUserData("${A|YAML}"),
			want: []string{where + `"${A|YAML}": line 1, column 1: no such encoder` + or},
		},
		"white space around the bar": {
			spec: "parameters: [{name: A}]" + inUserData("${A |yaml} ${A| yaml}"),
			want: []string{
				where + `"${A |yaml}": line 1, column 1: no such encoder` + or,
				where + `"${A| yaml}": line 1, column 12: no such encoder` + or,
			},
		},
		"an encoder on a whole value": {
			spec: "parameters: [{name: A}]" + inUserData("${{A|yaml}}"),
			want: []string{where + `"${{A|yaml}}": line 1, column 1: ${{A}} inserts a whole value as JSON and takes no encoder; write ${A|ENCODER} to insert text, where ENCODER is base64, json, sh or yaml`},
		},
		"an encoder on what resembles a whole value, in a text": {
			spec: "parameters: [{name: A}]" + inUserData("a\nb: ${{A|yml}}"),
			want: []string{where + `"${{A|yml}}": line 2, column 4: ${{A}} inserts a whole value as JSON and takes no encoder; write ${A|ENCODER} to insert text, where ENCODER is base64, json, sh or yaml`},
		},
		"an encoder of a parameter that is not declared": {
			spec: "parameters: [{name: PASSWORD}]" + inUserData("${PASWORD|yaml} ${OTHER|sh}"),
			want: []string{
				where + `"${PASWORD|yaml}": no parameter is called PASWORD; did you mean PASSWORD?`,
				where + `"${OTHER|sh}": no parameter is called OTHER; declare it, or write $${ for a literal ${`,
			},
		},
		"an encoder in a name": {
			spec: `{parameters: [{name: A}], virtualMachine: {metadata: {name: "a-${A|sh}", generateName: "${A|yaml}", namespace: "${A|base64}"}}}`,
			want: []string{
				`spec.virtualMachine.metadata.generateName: Invalid value: "${A|yaml}": generateName takes no encoder: write ${A}`,
				`spec.virtualMachine.metadata.name: Invalid value: "a-${A|sh}": name takes no encoder: write ${A}`,
				`spec.virtualMachine.metadata.namespace: Invalid value: "${A|base64}": namespace takes no encoder: write ${A}`,
			},
		},
		"an encoder in a message": {
			spec: `{message: "${A|x}", parameters: [{name: A}], virtualMachine: {}}`,
			want: []string{`spec.message: Invalid value: "${A|x}": line 1, column 1: no such encoder` + or},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template.Compile(parse(t, tc.spec))
			got := causes(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTextWithABarStays(t *testing.T) {
	for name, tc := range map[string]struct{ text, keep, want string }{
		"a name that is no parameter before what is no encoder": {text: "${user|trim} ${user |yaml}", want: "${user|trim} ${user |yaml}"},
		"the same, where undefined references are kept":         {text: "${user|trim}", keep: "Keep", want: "${user|trim}"},
		"an encoder of no parameter, where they are kept":       {text: "${user|yaml} ${{user|yaml}}", keep: "Keep", want: "${user|yaml} ${{user|yaml}}"},
		"an escaped placeholder":                                {text: "$${A|yaml} $${A|x} $${{A|yaml}}", want: "${A|yaml} ${A|x} ${{A|yaml}}"},
		"a bar without an end":                                  {text: "${A|yaml ${A|\n}", want: "${A|yaml ${A|\n}"},
		"a bar behind something else":                           {text: "${A:-b|yaml} ${|yaml}", want: "${A:-b|yaml} ${|yaml}"},
	} {
		t.Run(name, func(t *testing.T) {
			object := raw(string(mustMarshal(t, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"hostname": tc.text}}}})))
			object.Spec.Parameters = parse(t, `{parameters: [{name: A, value: x}], virtualMachine: {}}`).Spec.Parameters
			if tc.keep != "" {
				object.Spec.UndefinedReferences = "Keep"
			}
			rendered, err := render(object, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := rendered.Object()["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["hostname"]
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMatchReadsEncodedTexts(t *testing.T) {
	hostname := func(text string) string {
		return `{parameters: [{name: A}, {name: B}, {name: S, sensitive: true}], virtualMachine: {spec: {template: {spec: {hostname: ` + string(mustMarshal(t, text)) + `}}}}}`
	}
	vm := func(text string) string {
		return `{spec: {template: {spec: {hostname: ` + string(mustMarshal(t, text)) + `}}}}`
	}
	testMatch(t, map[string]matchCase{
		"YAML":                         {spec: hostname("a: ${A|yaml}\n"), vm: vm(`a: "x\"\\: y"` + "\n"), wantValues: map[string]string{"A": `x"\: y`}},
		"JSON":                         {spec: hostname(`{"a": ${A|json}}`), vm: vm(`{"a": "\t\u00a0"}`), wantValues: map[string]string{"A": "\t\u00a0"}},
		"the shell":                    {spec: hostname("echo ${A|sh}"), vm: vm(`echo 'it'\''s'`), wantValues: map[string]string{"A": `it's`}},
		"base64":                       {spec: hostname("${A|base64}"), vm: vm(`d2ViLTE=`), wantValues: map[string]string{"A": "web-1"}},
		"an empty value":               {spec: hostname("${A|yaml}"), vm: vm(`""`), wantValues: map[string]string{"A": ""}},
		"an empty value in base64":     {spec: hostname("${A|base64}"), vm: vm(``), wantValues: map[string]string{"A": ""}},
		"two values side by side":      {spec: hostname("${A|yaml}${B|base64}"), vm: vm(`"x"d2ViLTE=`), wantValues: map[string]string{"A": "x", "B": "web-1"}},
		"shell words side by side":     {spec: hostname(`${A|sh}\''${B|sh}`), vm: vm(`'it'\'''s'`), wantValues: map[string]string{"A": "it", "B": "s"}},
		"one value in several ways":    {spec: hostname("${A|yaml} ${A|sh} ${A|base64} ${A}"), vm: vm(`"it's" 'it'\''s' aXQncw== it's`), wantValues: map[string]string{"A": "it's"}},
		"first where its end is open":  {spec: hostname("${A} ${A|yaml} ${A}"), vm: vm(`a b "a b" a b`), wantValues: map[string]string{"A": "a b"}},
		"beside another, open as well": {spec: hostname("${A}${B} ${A|base64}${B|sh}"), vm: vm(`a b YQ==' b'`), wantValues: map[string]string{"A": "a", "B": " b"}},
		"one way twice":                {spec: hostname("${A|base64}${A|base64}"), vm: vm(`d2ViLTE=d2ViLTE=`), wantValues: map[string]string{"A": "web-1"}},
		"two values in two ways": {
			spec: hostname("${A|yaml} ${A|sh}"), vm: vm(`"a" 'b'`),
			wantDifferences: []string{`spec.template.spec.hostname: want "${A|yaml} ${A|sh}", got "\"a\" 'b'"`},
		},
		"open values that contradict": {
			spec: hostname("${A} ${A|sh}"), vm: vm(`a 'b'`),
			wantDifferences: []string{`spec.template.spec.hostname: want "${A} ${A|sh}", got "a 'b'"`},
		},
		"YAML that says the same in another way": {
			spec: hostname("${A|yaml}"), vm: vm(`"\x41"`),
			wantDifferences: []string{`spec.template.spec.hostname: want "${A|yaml}", got "\"\\x41\""`},
		},
		"YAML without quotes": {
			spec: hostname("a: ${A|yaml}"), vm: vm(`a: b`),
			wantDifferences: []string{`spec.template.spec.hostname: want "a: ${A|yaml}", got "a: b"`},
		},
		"more behind the quotes": {
			spec: hostname("a: ${A|yaml}"), vm: vm("a: \"b\"\nruncmd: []"),
			wantDifferences: []string{`spec.template.spec.hostname: want "a: ${A|yaml}", got "a: \"b\"\nruncmd: []"`},
		},
		"base64 with padding inside": {
			spec: hostname("${A|base64}"), vm: vm(`eA==eA==`),
			wantDifferences: []string{`spec.template.spec.hostname: want "${A|base64}", got "eA==eA=="`},
		},
		"base64 of what is no text": {
			spec: hostname("${A|base64}"), vm: vm(`/w==`),
			wantDifferences: []string{`spec.template.spec.hostname: want "${A|base64}", got "/w=="`},
		},
		"base64 of a line break": {
			spec: hostname("${A|base64}"), vm: vm(`YQpi`),
			wantDifferences: []string{`spec.template.spec.hostname: want ${A}, which does not take U+000A (character 2), got "a\nb"`},
		},
		"a sensitive value": {
			spec: hostname("${S|base64}-"), vm: vm(`aHVudGVyMg==+`),
			wantDifferences: []string{`spec.template.spec.hostname: want (sensitive), got (sensitive)`},
		},
	})
}
