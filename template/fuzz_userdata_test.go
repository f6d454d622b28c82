package template_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/template"
)

// plainUserData are documents with single-line parameters without encoders, in the places where templates older than
// encoders may have them. Each has few parameters, so that an error in one place does not invalidate the others.
var plainUserData = []string{
	"#cloud-config\nuser: fedora\npassword: ${A}\n",
	"#cloud-config\nuser: fedora\npassword: ${A}\nfinal_message: ${B}\nhostname: web\n",
	"#cloud-config\npassword: \"${A}\"\nhostname: '${B}'\n",
	"#cloud-config\nusers:\n- name: fedora\n  ssh_authorized_keys:\n  - ${A}\n  - \"${B}\"\n",
	"#cloud-config\nchpasswd: { expire: False, list: [${A}], users: [${B}] }\nuser: fedora\n",
	"#cloud-config\nwrite_files:\n- path: /etc/${A}\n  content: |\n    ${A}\n    echo \"${B}\"\nuser: fedora\n",
}

// encodedUserData has multiline parameters, each encoder in its intended place.
const encodedUserData = `#cloud-config
user: fedora
password: ${A|yaml}
hostname: ${B|json}
chpasswd: { expire: False, list: [${A|yaml}, ${B|json}], ${B|yaml}: 1 }
write_files:
- path: ${B|yaml}
  encoding: b64
  content: ${A|base64}
- content: |
    echo ${L|sh} ${A|base64}
  ${L|yaml}: ${L|json}
final_message: ${B|yaml}
`

// shellUserData has shell words without quotes of YAML, of which each value is one.
const shellUserData = "#cloud-config\nusers:\n- echo ${A|sh}\n- ${B|sh}\n- \"echo ${A|sh}\"\nhostname: x\n"

// FuzzUserDataGainsNoKey verifies, for any values, that a YAML 1.1 parser finds only top-level keys of the template in the
// user data; and with encoders, that it reads the values back.
func FuzzUserDataGainsNoKey(f *testing.F) {
	for _, value := range []string{
		"", "hunter2", "a\nruncmd: [reboot]", "a\rruncmd: [reboot]", "a\u0085runcmd: [reboot]", "a\u2028runcmd: [reboot]", "a\u2029runcmd: [reboot]", "a\vruncmd: []",
		`x: y`, `x #`, `"`, `'`, `\`, `" #`, `", runcmd: ["`, `]}`, `{`, `[`, `|`, `>-`, `&a`, `*a`, `!!map`, `? a`, `- a`, "\t", "---", "...", "%YAML 1.2", "\ufeff", "a\x00",
		`a'\''b`, "it's", "\xff", "<<: {runcmd: []}", "\u00a0", "\uffff", "\ufffe", "\U0001ffff", "\ufdd0", "it's", "a: b", "a #b", "a\tb", strings.Repeat("x", 2000),
	} {
		f.Add(value, "b")
		f.Add("b", value)
		f.Add(value, value)
	}
	var plain []*template.Compiled
	for _, text := range plainUserData {
		plain = append(plain, compile(f, userDataTemplate(f, text, false)))
	}
	encoded := compile(f, userDataTemplate(f, encodedUserData, true))
	shell := compile(f, userDataTemplate(f, shellUserData, true))
	f.Fuzz(func(t *testing.T, a, b string) {
		if text, made := userDataOf(t, shell, map[string]string{"A": a, "B": b}); made {
			got, parsed := checkTop(t, text, "users", "hostname")
			if diff := cmp.Diff(any([]any{"echo '" + a + "'", b, "echo '" + a + "'"}), got["users"]); !parsed || diff != "" {
				t.Errorf("parsed: %v (-given +read):\n%s", parsed, diff)
			}
		}
		line := strings.Map(func(r rune) rune {
			if r == '\n' {
				return -1
			}
			return r
		}, a)
		top := []string{"user", "users", "password", "hostname", "chpasswd", "write_files", "final_message"}
		for _, compiled := range plain {
			if text, made := userDataOf(t, compiled, map[string]string{"A": a, "B": b}); made {
				checkTop(t, text, top...)
			}
		}
		text, made := userDataOf(t, encoded, map[string]string{"A": a, "B": b, "L": line})
		if !made {
			return
		}
		// YAML requires that a key with its value is no longer than this.
		const longestKey = 1000
		if len(b) > longestKey || len(line) > longestKey {
			return
		}
		got, parsed := checkTop(t, text, top...)
		if !parsed {
			t.Fatalf("no YAML:\n%s", text)
		}
		for key, want := range map[string]string{"password": a, "hostname": b, "final_message": b} {
			if diff := cmp.Diff(any(want), got[key]); diff != "" {
				t.Errorf("%s (-given +read):\n%s", key, diff)
			}
		}
	})
}

func userDataTemplate(tb testing.TB, text string, multiline bool) string {
	tb.Helper()
	spec, err := json.Marshal(map[string]any{
		"parameters": []any{
			map[string]any{"name": "A", "multiline": multiline}, map[string]any{"name": "B", "multiline": multiline}, map[string]any{"name": "L"},
		},
		"virtualMachine": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"volumes": []any{map[string]any{"name": "init", "cloudInitNoCloud": map[string]any{"userData": text}}},
		}}}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return string(spec)
}

// userDataOf renders user data, unless a value is rejected.
func userDataOf(t *testing.T, compiled *template.Compiled, values map[string]string) (text string, made bool) {
	t.Helper()
	binding, err := compiled.Bind(values)
	if err != nil {
		causes(t, err)
		return "", false
	}
	rendered, err := compiled.Render(binding)
	if err != nil {
		causes(t, err)
		return "", false
	}
	volume := rendered.Object()["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)[0].(map[string]any)
	return volume["cloudInitNoCloud"].(map[string]any)["userData"].(string), true
}

// checkTop verifies that the top-level keys of a document, if it is one, are among those of the template.
func checkTop(t *testing.T, text string, keys ...string) (document map[string]any, parsed bool) {
	t.Helper()
	if yaml.Unmarshal([]byte(text), &document) != nil {
		return nil, false
	}
	for _, key := range slices.Sorted(maps.Keys(document)) {
		if !slices.Contains(keys, key) {
			t.Errorf("key %q is new in\n%s", key, text)
		}
	}
	return document, true
}
