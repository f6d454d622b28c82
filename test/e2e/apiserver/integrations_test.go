package apiserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// block returns the first block of code after a text of the page about integrations.
func block(t *testing.T, after, language string) string {
	t.Helper()
	return testfile.Block(t, "../../../docs/integrations.md", after, language)
}

func TestIntegrations(t *testing.T) {
	m := newMarket(t)
	team := floor(t)
	approval := gen.Manifest(gen.Approval("integrations-"+team, gen.Governs(team), gen.Approves(m.golden+"/small"),
		gen.Spec("parameters: [{name: CORES, minimum: 2, maximum: 4}, {name: SIZE, allowed: [small, medium]}, {name: TOKEN, anyValue: true}]")))
	mustKubectl(t, approval, "apply", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, approval, "delete", "--ignore-not-found", "-f", "-") })
	harness.Bind(t, stencil.Plane, m.eve, team, "edit")
	m.await(t, m.eve, team, "", "gone other small+ waiting")
	here := strings.NewReplacer("golden/", m.golden+"/", "team-a", team)

	run := func(t *testing.T, line string) string {
		t.Helper()
		ran, err := stencilctl.Command{Binary: binary, Kubeconfig: m.eve.Kubeconfig, Line: here.Replace(line)}.Run(t.Context())
		if err != nil || ran.Code != 0 {
			t.Fatalf("%s: %+v %v", line, ran, err)
		}
		return ran.Output
	}
	commands := strings.Split(strings.TrimSpace(block(t, "## Editors", "sh")), "\n")
	schemaOf := func(t *testing.T, i int) string {
		line, _, _ := strings.Cut(strings.TrimPrefix(commands[i], "stencilctl "), " > ")
		return run(t, line)
	}
	small := schemaOf(t, 1)

	t.Run("editors", func(t *testing.T) {
		valid := func(schema, document string) error {
			raw, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
			if err != nil {
				t.Fatal(err)
			}
			return compiled(t, []byte(schema)).Validate(value)
		}
		var settings struct {
			Schemas map[string][]string `json:"yaml.schemas"`
		}
		if err := json.Unmarshal([]byte(block(t, "settings.json", "json")), &settings); err != nil || len(settings.Schemas) != 2 {
			t.Errorf("%v %v", settings, err)
		}
		for _, line := range commands {
			if _, file, _ := strings.Cut(line, " > "); settings.Schemas[file] == nil {
				t.Errorf("the settings do not name %s", file)
			}
		}
		values := block(t, "A line in the file", "yaml")
		if err := valid(small, values); err != nil {
			t.Errorf("%v", err)
		}
		if err := valid(small, strings.Replace(values, "4", "8", 1)); err == nil {
			t.Error("a value that no approval allows is valid")
		}
		kinds := schemaOf(t, 0)
		if err := valid(kinds, strings.SplitN(m.templates(), "---", 3)[0]); err != nil {
			t.Errorf("%v", err)
		}
		if err := valid(kinds, strings.Replace(strings.Split(m.templates(), "---")[0], "parameters:", "paramters:", 1)); err == nil {
			t.Error("a misspelled field is valid")
		}
	})

	t.Run("Backstage", func(t *testing.T) {
		type form struct {
			Required   []string
			Properties map[string]map[string]any
		}
		var page struct{ Spec struct{ Parameters form } }
		var printed form
		if err := errors.Join(yaml.Unmarshal([]byte(block(t, "## Backstage", "yaml")), &page), json.Unmarshal([]byte(small), &printed)); err != nil {
			t.Fatal(err)
		}
		shown := page.Spec.Parameters
		if diff := cmp.Diff(printed.Required, shown.Required); diff != "" {
			t.Errorf("required (-schema +page):\n%s", diff)
		}
		for name, property := range shown.Properties {
			// The page leaves out what every text has.
			delete(printed.Properties[name], "allOf")
			if diff := cmp.Diff(printed.Properties[name], property); diff != "" {
				t.Errorf("%s (-schema +page):\n%s", name, diff)
			}
		}
		skeleton := here.Replace(block(t, "`skeleton/vm.yaml`", "yaml"))
		for cores, wantCode := range map[string]int{"4": 0, "5": 1} {
			values := map[string]string{"NAME": "backstage-1", "CORES": cores, "SIZE": "small"}
			manifest := regexp.MustCompile(`\$\{\{ values\.parameters\.([A-Z]+) \}\}`).ReplaceAllStringFunc(skeleton, func(expression string) string {
				return values[strings.Fields(strings.TrimPrefix(expression, "${{ values.parameters."))[0]]
			})
			out := kubectl(t, m.eve, manifest, "create", "--dry-run=server", "-f", "-")
			if out.Code != wantCode || wantCode != 0 && !strings.Contains(out.Stderr, "must be at most 4") {
				t.Errorf("%s: %+v", manifest, out)
			}
		}
	})

	t.Run("Terraform", func(t *testing.T) { m.terraform(t, team, here) })
}

// terraform applies the manifest of the page as the provider does: a plan is a dry run of server-side apply.
func (m market) terraform(t *testing.T, team string, here *strings.Replacer) {
	hcl := here.Replace(block(t, "## Terraform", "hcl"))
	annotations := map[string]string{}
	for _, match := range regexp.MustCompile(`"([^"]+)"\s+= "([^"]+)"`).FindAllStringSubmatch(hcl, -1) {
		annotations[match[1]] = match[2]
	}
	if got := slices.Sorted(maps.Keys(annotations)); len(got) != 2 {
		t.Fatalf("annotations %v", got)
	}
	apply := func(t *testing.T, more ...string) (map[string]any, error) {
		t.Helper()
		manifest, err := json.Marshal(map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
			"metadata": map[string]any{"name": "web-1", "namespace": team, "annotations": annotations}})
		if err != nil {
			t.Fatal(err)
		}
		out := kubectl(t, m.eve, string(manifest), append([]string{"apply", "--server-side", "--field-manager=Terraform", "-o", "json", "-f", "-"}, more...)...)
		if out.Code != 0 {
			return nil, errors.New(out.Stderr)
		}
		return decodeObject(t, out.Stdout), nil
	}
	discard(t, team, "web-1")
	const plan = "--dry-run=server"
	annotations["parameter.template.kubevirt.io/CORES"] = "8"
	if _, err := apply(t, plan); err == nil || !strings.Contains(err.Error(), "must be at most 4") {
		t.Errorf("a plan that no approval allows: %v", err)
	}
	annotations["parameter.template.kubevirt.io/CORES"] = "2"
	if _, err := apply(t, plan); err != nil {
		t.Fatal(err)
	}
	const secret = "parameter.template.kubevirt.io/TOKEN"
	annotations[secret] = "abcdefghijkl"
	applied, err := apply(t)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprint(applied["metadata"]), "abcdefghijkl") {
		t.Errorf("the annotation of a sensitive parameter is stored: %v", applied)
	}
	unchanged := func(t *testing.T) {
		t.Helper()
		// KubeVirt's controller changes a VM that was just created.
		harness.Eventually(t, "a second plan changes nothing", func() error {
			stored := decodeObject(t, mustKubectl(t, "", "get", "vm", "web-1", "--namespace="+team, "-o", "json"))
			planned, err := apply(t, plan)
			if diff := cmp.Diff(stored, planned); err == nil && diff != "" {
				err = fmt.Errorf("(-stored +planned):\n%s", diff)
			}
			return err
		})
	}
	unchanged(t)
	mustKubectl(t, "", "patch", "vmt", "small", "--namespace="+m.golden, "--type=json", `--patch=[{"op": "replace", "path": "/spec/parameters/3/value", "value": "b"}]`)
	unchanged(t)
	annotations["parameter.template.kubevirt.io/CORES"] = "3"
	if _, err := apply(t, plan); err == nil {
		t.Error("another value of a parameter is accepted")
	}
}

// decodeObject decodes an object without what the API server and KubeVirt count and report.
func decodeObject(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	metadata := object["metadata"].(map[string]any)
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		delete(metadata, field)
	}
	delete(object, "status")
	return object
}
