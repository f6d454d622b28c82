package template_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vmstencil/stencil/template"
)

// named returns a template with the name pattern, with the parameters A, B, C, G, which is generated, and S, which is
// sensitive.
func named(tb testing.TB, pattern string) *template.Compiled {
	tb.Helper()
	return compile(tb, `
parameters: [{name: A}, {name: B, value: default}, {name: C}, {name: G, generate: expression, from: "[a-z]{4}"}, {name: S, sensitive: true}]
virtualMachine: {metadata: {name: '`+pattern+`'}}
`)
}

func TestBindName(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern   string
		name      string
		values    map[string]string
		want      map[string]string
		wantCause string
	}{
		"a name without placeholders binds nothing": {
			pattern: "web", name: "web",
		},
		"no name binds nothing": {
			pattern: "${A}", name: "",
		},
		"a placeholder takes the whole name": {
			pattern: "${A}", name: "web-1", want: map[string]string{"A": "web-1"},
		},
		"a placeholder takes what is between the text around it": {
			pattern: "vm-${A}-x", name: "vm-web-1-x", want: map[string]string{"A": "web-1"},
		},
		"a name that does not fit binds nothing": {
			pattern: "vm-${A}", name: "web-1",
		},
		"a name that ends otherwise binds nothing": {
			pattern: "${A}-vm", name: "web-1",
		},
		"a placeholder takes one character at least": {
			pattern: "vm-${A}", name: "vm-",
		},
		"the first of two placeholders takes as little as it can": {
			pattern: "${A}-${B}", name: "a-b-c", want: map[string]string{"A": "a", "B": "b-c"},
		},
		"the text between two placeholders is looked for after the first character": {
			pattern: "${A}-${B}", name: "--b", want: map[string]string{"A": "-", "B": "b"},
		},
		"placeholders with nothing between them share the name, the last taking the rest": {
			pattern: "${A}${B}${C}", name: "wxyz", want: map[string]string{"A": "w", "B": "x", "C": "yz"},
		},
		"placeholders with nothing between them need a character each": {
			pattern: "${A}${B}${C}", name: "wx",
		},
		"placeholders in a row before a text share what comes before it": {
			pattern: "${A}${B}.${C}", name: "ab.c.d", want: map[string]string{"A": "a", "B": "b", "C": "c.d"},
		},
		"a character is not torn apart": {
			pattern: "${A}${B}", name: "éà", want: map[string]string{"A": "é", "B": "à"},
		},
		"the text at the end is looked for at the end": {
			pattern: "${A}-x", name: "a-x-x", want: map[string]string{"A": "a-x"},
		},
		"a placeholder that occurs twice takes the same twice": {
			pattern: "${A}-${A}", name: "a-a", want: map[string]string{"A": "a"},
		},
		"a placeholder that would have to be two things": {
			pattern: "${A}-${A}", name: "a-b",
			wantCause: `metadata.name: Invalid value: "a-b": the template names its VirtualMachines ${A}-${A}, so A would have to be two things, "a" and "b"`,
		},
		"a sensitive placeholder that would have to be two things": {
			pattern: "${S}-${S}", name: "a-b",
			wantCause: `metadata.name: Invalid value: "a-b": the template names its VirtualMachines ${S}-${S}, so S would have to be two things`,
		},
		"a default gives way to the name": {
			pattern: "vm-${B}", name: "vm-x", want: map[string]string{"B": "x"},
		},
		"a generator gives way to the name": {
			pattern: "vm-${G}", name: "vm-x", want: map[string]string{"G": "x"},
		},
		"an explicit value is literal": {
			pattern: "${A}-${B}", name: "a-b-c", values: map[string]string{"A": "a-b"}, want: map[string]string{"B": "c"},
		},
		"explicit values that make up the whole name leave nothing to bind": {
			pattern: "${A}-${B}", name: "a-b", values: map[string]string{"A": "a", "B": "b"},
		},
		"an explicit value that is empty is literal": {
			pattern: "${A}-${B}", name: "-b", values: map[string]string{"A": ""}, want: map[string]string{"B": "b"},
		},
		"an explicit value that is empty asks a generator, so the name decides": {
			pattern: "${G}", name: "web", values: map[string]string{"G": ""}, want: map[string]string{"G": "web"},
		},
		"literal neighbours are looked for together": {
			pattern: "${A}-${B}-${C}", name: "x-1-y-2-z", values: map[string]string{"B": "2"}, want: map[string]string{"A": "x-1-y", "C": "z"},
		},
		"an explicit value that contradicts the name": {
			pattern: "${A}-${B}", name: "web-1", values: map[string]string{"A": "db", "C": "x"},
			wantCause: `metadata.name: Invalid value: "web-1": the template names its VirtualMachines ${A}-${B}, which does not become this name with the given A=db`,
		},
		"a sensitive explicit value that contradicts the name": {
			pattern: "${A}-${S}", name: "web-1", values: map[string]string{"S": "hunter2"},
			wantCause: `metadata.name: Invalid value: "web-1": the template names its VirtualMachines ${A}-${S}, which does not become this name with the given S`,
		},
		"an explicit value does not contradict a name that never fits": {
			pattern: "vm-${A}", name: "web-1", values: map[string]string{"A": "db"},
		},
		"escapes are literal": {
			pattern: "$${A}-${A}", name: "${A}-x", want: map[string]string{"A": "x"},
		},
		"a whole value as JSON binds nothing": {
			pattern: "${{A}}", name: "web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			compiled := named(t, tc.pattern)
			given := maps.Clone(tc.values)
			got, err := compiled.BindName(tc.name, tc.values)
			var want []string
			if tc.wantCause != "" {
				want = []string{tc.wantCause}
			}
			if diff := cmp.Diff(want, causes(t, err)); diff != "" {
				t.Fatalf("causes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("bound (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(given, tc.values, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the given values were changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestNamesThatAreBoundComeOutAgain(t *testing.T) {
	for _, pattern := range []string{"${A}", "x${A}y", "${A}-${B}", "${A}${B}${C}", "${A}.${B}.${C}", "${A}--${A}", "-${A}-${B}-"} {
		compiled := named(t, pattern)
		for _, name := range []string{"a", "xay", "x-y", "xyz", "a.b.c", "..", "...", "....", "a--a", "a----a", "-a-b-", "-----", "xxyy", "a.b.c.d.e"} {
			bound, err := compiled.BindName(name, nil)
			if err != nil || bound == nil {
				continue
			}
			binding, err := compiled.Bind(bound)
			if err != nil {
				t.Fatalf("%s against %s: %v", name, pattern, err)
			}
			rendered, err := compiled.Render(binding)
			if err != nil {
				t.Fatalf("%s against %s: %v", name, pattern, err)
			}
			got := rendered.Object()["metadata"].(map[string]any)["name"]
			if got != name {
				t.Errorf("%s against %s binds %v, which makes %v", name, pattern, bound, got)
			}
		}
	}
}

func TestBindNameTakesLinearTime(t *testing.T) {
	const wildcards = 100
	var parameters, pattern strings.Builder
	for i := range wildcards {
		name := "P" + strings.Repeat("x", i)
		parameters.WriteString("{name: " + name + "},")
		pattern.WriteString("a${" + name + "}")
	}
	compiled := compile(t, "{parameters: ["+parameters.String()+"], virtualMachine: {metadata: {name: '"+pattern.String()+"b'}}}")

	start := time.Now()
	bound, err := compiled.BindName(strings.Repeat("a", 1<<20), nil)
	if err != nil || bound != nil {
		t.Errorf("got %d values and error %v, want no match", len(bound), err)
	}
	// An algorithm that backtracks would not end at all.
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}
