package template_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// FuzzCompileRender verifies, for any template and any value, that the rendered VirtualMachine can be decoded strictly into
// KubeVirt's types, that rendering is reproducible, and that no error contains the value of a sensitive parameter.
func FuzzCompileRender(f *testing.F) {
	for _, name := range []string{"fedora.yaml", "everything.yaml"} {
		spec, err := json.Marshal(readTemplate(f, name).Spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(spec), "x", "4")
	}
	for _, spec := range []string{
		`{virtualMachine: {}}`,
		`{parameters: [{name: A}, {name: B}], virtualMachine: {metadata: {name: "${A}${B}", labels: {"${A}": "${{B}}", "${B}": "$${A}"}}}}`,
		`{parameters: [{name: A, sensitive: true}], virtualMachine: {spec: {template: {spec: {domain: {"${A}": {cores: "${{A}}"}}}}}}}`,
		`{parameters: [{name: A, type: int, minimum: -1, maximum: 9}], virtualMachine: {spec: {template: {spec: {domain: {cpu: {cores: "${{A}}"}, memory: {guest: "${A}Gi"}}}}}}}`,
		`{parameters: [{name: A, pattern: "[a-z]+", enum: [a, b], value: a}], objectLabels: {"${A}": a}, virtualMachine: {spec: {template: {spec: {networks: ["${{A}}", {name: a}]}}}}}`,
		`{undefinedReferences: Keep, message: "${A}", parameters: [{name: A, generate: expression, from: "x[a-z]{2}"}], virtualMachine: {metadata: {namespace: "${A}", annotations: {a: "${HOME} ${{A}}"}}}}`,
		`{parameters: [{name: A, multiline: true}, {name: B, sensitive: true}], message: "${A|sh}", virtualMachine: {metadata: {labels: {"${A|base64}": "${B|json}"}}, spec: {template: {spec: {hostname: "${A|yaml}${B|x} ${{A|sh}}"}}}}}`,
		`{parameters: [{name: A}, {name: B, sensitive: true}], objectLabels: {a: "${A}"}, objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${A}"}, data: {"${B}": "${{A}}"}}, {apiVersion: v1, kind: Secret, metadata: {name: "${B}"}, data: "${{A}}"}], virtualMachine: {metadata: {namespace: "${A}"}}}`,
		`{secretize: true, parameters: [{name: A, required: true}, {name: B, sensitive: true}], virtualMachine: {metadata: {name: "a${A}", namespace: "${A}"}, spec: {template: {spec: {volumes: [{name: "${A}", cloudInitNoCloud: {userData: "${{A}}", networkDataBase64: "${B|base64}"}}]}}}}}`,
		`{syntax: Parentheses, parameters: [{name: A}, {name: B, sensitive: true}], virtualMachine: {metadata: {labels: {a: "1$((A))", "$((A))$((B))": "$((A))$((B))"}}, spec: {running: "$((A))$((B))", template: {spec: {domain: {cpu: {cores: "1$((A))$((B))0"}}}}}}}`,
		`{objects: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine}, {metadata: {generateName: a, namespace: "${A}"}, "$": {}, status: {}}, 7], virtualMachine: []}`,
		`{parameters: [{name: A}], virtualMachine: {spec: {dataVolumeTemplates: [{metadata: {managedFields: [{fieldsV1: "${{A}}", time: "${A}"}]}}], template: "${{A}}"}}}`,
	} {
		encoded, err := yaml.YAMLToJSON([]byte(spec))
		if err != nil {
			f.Fatal(err)
		}
		for _, value := range []string{"", "4", `{"name":"a"}`, `["a"]`, "cpu", "\xff\"\n", "2006-01-02T15:04:05Z"} {
			f.Add(string(encoded), value, value)
		}
	}
	f.Fuzz(func(t *testing.T, spec, a, b string) {
		object := &v1beta1.VirtualMachineTemplate{}
		if err := json.Unmarshal([]byte(spec), &object.Spec); err != nil {
			return
		}
		secrets := secretsOf(object, a, b)
		compiled, err := template.Compile(object, template.WithRandom(counting{}))
		checkError(t, err, secrets)
		if err != nil {
			return
		}
		values := map[string]string{}
		for i, p := range object.Spec.Parameters {
			switch i % 3 {
			case 0:
				values[p.Name] = a
			case 1:
				values[p.Name] = b
			}
		}
		if name, err := compiled.BindName(a, map[string]string{"B": b}); err == nil {
			for parameter, value := range name {
				if value == "" || !strings.Contains(a, value) {
					t.Errorf("the name %q binds %s to %q", a, parameter, value)
				}
			}
		}
		for _, given := range []map[string]string{values, nil} {
			binding, err := compiled.Bind(given)
			checkError(t, err, secrets)
			if err != nil {
				continue
			}
			rendered, err := compiled.Render(binding)
			checkError(t, err, secrets)
			if err != nil {
				continue
			}
			checkRendered(t, rendered)
			checkObjects(t, compiled, rendered)
			rendered.Message()
			rendered.Object()
			again, err := compiled.Render(binding)
			if err != nil || !bytes.Equal(again.JSON(), rendered.JSON()) || !bytes.Equal(again.Objects(), rendered.Objects()) {
				t.Errorf("rendering again makes %v (%v), and made %s before", again, err, rendered.JSON())
			}
		}
	})
}

// checkObjects verifies that every object has what identifies it, and no twin.
func checkObjects(t *testing.T, compiled *template.Compiled, rendered *template.Rendered) {
	t.Helper()
	var objects []map[string]any
	if rendered.Objects() != nil {
		if err := json.Unmarshal(rendered.Objects(), &objects); err != nil {
			t.Fatalf("the objects are not a JSON list: %v\n%s", err, rendered.Objects())
		}
	}
	if len(objects) != len(compiled.Objects()) {
		t.Errorf("%d objects are rendered of %d", len(objects), len(compiled.Objects()))
	}
	seen := map[string]bool{}
	for _, object := range objects {
		metadata, _ := object["metadata"].(map[string]any)
		version, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		name, _ := metadata["name"].(string)
		id := version + " " + kind + " " + name
		if version == "" || kind == "" || name == "" || strings.HasPrefix(version, "kubevirt.io/") || seen[id] {
			t.Errorf("the object %q has no identity of its own", id)
		}
		seen[id] = true
	}
}

// secretsOf returns the values that no error may contain: those of sensitive parameters, unless they are too short to be
// distinguished, or occur in the template.
func secretsOf(object *v1beta1.VirtualMachineTemplate, given ...string) []string {
	var secrets []string
	open := *object.DeepCopy()
	for i := range open.Spec.Parameters {
		p := &open.Spec.Parameters[i]
		if p.Sensitive {
			secrets = append(secrets, p.Value, given[i%len(given)])
			p.Value, p.From, p.Enum = "", "", nil
		}
	}
	readable, err := json.Marshal(open)
	if err != nil {
		return nil
	}
	var kept []string
	for _, secret := range secrets {
		const tellable = 8
		if len(secret) >= tellable && !bytes.Contains(readable, []byte(secret)) {
			kept = append(kept, secret)
		}
	}
	return kept
}

func checkError(t *testing.T, err error, secrets []string) {
	t.Helper()
	if err == nil {
		return
	}
	causes(t, err)
	for _, secret := range secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error holds the secret %q: %v", secret, err)
		}
	}
}
