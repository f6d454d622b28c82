package template_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// FuzzMatch verifies, for any template and any VirtualMachine, that Match ends in time, returns the same result when
// repeated, and shows no secret; that the found values make a VirtualMachine which the given one contains; and that rendered
// VirtualMachines match.
func FuzzMatch(f *testing.F) {
	for name, values := range map[string]map[string]string{
		"fedora.yaml":     {"NAME": "web-1"},
		"everything.yaml": {"CORES": "4", "EXTRA_DISK": `{"name":"x"}`},
	} {
		object := readTemplate(f, name)
		spec, err := json.Marshal(object.Spec)
		if err != nil {
			f.Fatal(err)
		}
		rendered, err := render(object, values)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(spec), string(rendered.JSON()), "web-1", "4")
	}
	for _, seed := range []struct{ spec, vm string }{
		{`{virtualMachine: {}}`, `{}`},
		{
			`{syntax: Parentheses, parameters: [{name: A}, {name: B}], virtualMachine: {spec: {running: "$((A))$((B))", template: {spec: {domain: {cpu: {cores: "1$((A))", threads: "$((A))$((B))"}}}}}}}`,
			`{spec: {running: true, template: {spec: {domain: {cpu: {cores: 12, threads: 24}}}}}}`,
		},
		{
			`{parameters: [{name: A}, {name: B}], virtualMachine: {metadata: {name: "${A}-${B}", labels: {"${A}": "${B}${A}", "${B}": "$${A}"}}}}`,
			`{metadata: {name: a-b-c, labels: {a-b: ca-b, c: "${A}"}}}`,
		},
		{
			`{parameters: [{name: A, sensitive: true}], virtualMachine: {spec: {template: {spec: {domain: {"${A}": {cores: "${{A}}"}}}}}}}`,
			`{spec: {template: {spec: {domain: {cpu: {cores: 1}}}}}}`,
		},
		{
			`{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {networks: ["${{A}}", {name: a}, {name: "n${B}"}, "${{B}}"], tolerations: ["${{A}}", {key: a}, "${{B}}"]}}}}}`,
			`{spec: {template: {spec: {networks: [{name: a}, {name: n1}, {name: x}], tolerations: [{key: a}, {key: b}]}}}}`,
		},
		{
			`{parameters: [{name: A}, {name: B, type: int, maximum: 9}], virtualMachine: {spec: {template: {spec: {domain: {cpu: {cores: "${{B}}"}, memory: {guest: "${A}Mi"}}, hostname: "${A}${B}${A}"}}}}}`,
			`{spec: {template: {spec: {domain: {cpu: {cores: 11}, memory: {guest: 1Gi}}, hostname: 1024111024}}}}`,
		},
		{
			`{parameters: [{name: A, multiline: true}, {name: B}], virtualMachine: {spec: {template: {spec: {hostname: "${A}${B|sh}${A|base64}", subdomain: "${A|yaml}${B|base64}${B|json}"}}}}}`,
			`{spec: {template: {spec: {hostname: "a'b'YQ==", subdomain: "\"a\"Yg==\"b\""}}}}`,
		},
		{
			`{parameters: [{name: A}, {name: B}], virtualMachine: {metadata: {namespace: "${A}", annotations: {template.kubevirt.io/rendered: x}}, spec: {template: {metadata: {labels: "${{B}}"}, spec: {networks: "${{B}}"}}}}}`,
			`{metadata: {namespace: x, annotations: {parameter.template.kubevirt.io/A: x, template.kubevirt.io/rendered: '{"sensitive":["A"]}'}}, spec: {template: {metadata: {labels: {a: b}}, spec: {networks: [{name: a}, {name: b}]}}}}`,
		},
		{
			`{secretize: true, parameters: [{name: A}, {name: B}], virtualMachine: {metadata: {name: "v${A}"}, spec: {template: {spec: {volumes: [{name: "${A}${B}", cloudInitNoCloud: {userData: "${B}"}}]}}}}}`,
			`{metadata: {name: vx}, spec: {template: {spec: {volumes: [{name: xy, cloudInitNoCloud: {secretRef: {name: vx-xy}}}]}}}}`,
		},
	} {
		spec, err := yaml.YAMLToJSON([]byte(seed.spec))
		if err != nil {
			f.Fatal(err)
		}
		vm, err := yaml.YAMLToJSON([]byte(seed.vm))
		if err != nil {
			f.Fatal(err)
		}
		for _, value := range []string{"", "a", "4", "a-b", `{"name":"a"}`, `[{"name":"a"}]`, "cpu", "\n\"", "1Gi"} {
			f.Add(string(spec), string(vm), value, value+value)
		}
	}
	f.Fuzz(func(t *testing.T, spec, vm, a, b string) {
		object := &v1beta1.VirtualMachineTemplate{}
		if err := json.Unmarshal([]byte(spec), &object.Spec); err != nil {
			return
		}
		compiled, err := template.Compile(object, template.WithRandom(counting{}))
		if err != nil {
			return
		}
		tree := map[string]any{}
		decoder := json.NewDecoder(bytes.NewReader([]byte(vm)))
		decoder.UseNumber()
		if decoder.Decode(&tree) == nil {
			checkMatch(t, compiled, tree, len(spec)+len(vm), secretsOf(object, a, b))
		}

		values := map[string]string{}
		for i, p := range object.Spec.Parameters {
			values[p.Name] = []string{a, b}[i%2]
		}
		binding, err := compiled.Bind(values)
		if err != nil {
			return
		}
		rendered, err := compiled.Render(binding)
		if err != nil {
			return
		}
		found := checkMatch(t, compiled, rendered.Object(), len(spec)+len(rendered.JSON()), secretsOf(object, a, b))
		if !found.Matches() && !exhausted(found) && !spellingMatters(object) {
			t.Errorf("with %q it makes %s, which does not match: %v", binding.Values(), rendered.JSON(), found.Differences())
		}
	})
}

// exhausted reports whether a comparison stopped searching at its limit.
func exhausted(found *template.Match) bool {
	const searched = 1 << 16
	return found.Steps() > searched
}

// spellingMatters reports whether a template permits only one of several spellings of the same JSON, which the
// VirtualMachine does not show.
func spellingMatters(object *v1beta1.VirtualMachineTemplate) bool {
	for _, p := range object.Spec.Parameters {
		if p.Pattern != "" || p.Generate != "" {
			return true
		}
	}
	return false
}

// checkOnlyUnshownAreMissing verifies that the only errors about found values are missing parameters that the VirtualMachine
// does not show.
func checkOnlyUnshownAreMissing(tb testing.TB, err error, found *template.Match) {
	tb.Helper()
	var invalid *template.InvalidError
	if !errors.As(err, &invalid) {
		tb.Fatal(err)
	}
	for _, cause := range invalid.Causes {
		name := strings.TrimSuffix(strings.TrimPrefix(cause.Field, "parameters["), "]")
		if _, shows := found.Values()[name]; shows && !strings.HasSuffix(cause.Field, ".from") {
			tb.Errorf("%q cannot be bound: %v", found.Values(), err)
		}
	}
}

func checkMatch(t *testing.T, compiled *template.Compiled, vm map[string]any, size int, secrets []string) *template.Match {
	t.Helper()
	found := matched(t, compiled, vm)
	checkSteps(t, found, size)
	again := matched(t, compiled, vm)
	if diff := cmp.Diff(found.Differences(), again.Differences()); diff != "" {
		t.Errorf("differences when asked again (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(found.Values(), again.Values()); diff != "" {
		t.Errorf("values when asked again (-before +after):\n%s", diff)
	}
	for _, d := range found.Differences() {
		for _, secret := range secrets {
			if shown := d.Path + d.Want + d.Got; strings.Contains(shown, secret) {
				t.Errorf("the difference %v holds the secret %q", d, secret)
			}
		}
	}
	if !found.Matches() {
		return found
	}
	binding, err := compiled.Bind(found.Values())
	if err != nil {
		checkOnlyUnshownAreMissing(t, err, found)
		return found
	}
	// Users choose the name, after which secretize names Secrets.
	metadata, _ := vm["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	rendered, err := compiled.RenderAs(binding, name)
	if err != nil {
		// A whole value contains more than the types of KubeVirt permit.
		return found
	}
	if !contains(t, vm, rendered) {
		t.Errorf("%q make %s, which is not in %v", binding.Values(), rendered.JSON(), vm)
	}
	return found
}
