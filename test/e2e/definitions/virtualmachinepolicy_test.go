package definitions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// fullPolicy uses every field.
const fullPolicy = `
apiVersion: stencil.kubevirt.io/v1alpha1
kind: VirtualMachinePolicy
metadata: {name: full}
spec:
  rego: |
    package full
    deny contains "no" if input.object.spec.runStrategy == data.parameters.strategy
  match:
    operations: [DELETE, CREATE]
    kinds: [VirtualMachineTemplate, VirtualMachine]
    namespaceSelector: {matchLabels: {tier: gold}}
    objectSelector: {matchExpressions: [{key: legacy, operator: DoesNotExist}]}
    templates:
    - {namespace: golden, name: fedora.41}
    - {namespace: golden, selector: {matchLabels: {os: linux}}}
    - {namespace: other}
    subjects:
      include: [{kind: Group, name: team-a}]
      exclude: [{kind: ServiceAccount, namespace: kubevirt, name: kubevirt-controller}]
  parameters: {strategy: Always, nested: {list: [1, 1.5, "a", null, true]}}
  parametersSchema: {type: object, required: [strategy], properties: {strategy: {type: string}}}
  data:
  - {name: images, configMapKey: {name: allowed.images, key: images.yaml}}
  enforcement: Warn
  failureMode: Allow
  timeoutMilliseconds: 500
  tests:
  - name: everything that a test can say
    input:
      operation: UPDATE
      object: {kind: VirtualMachine, metadata: {name: a}, spec: {runStrategy: Always, anything: [1]}}
      oldObject: {kind: VirtualMachine}
      template: {namespace: golden, name: fedora, parameters: [{name: P}]}
      parameters: {P: "1"}
      instancetype: {kind: VirtualMachineInstancetype, spec: {cpu: {guest: 1}}}
      preference: {kind: VirtualMachinePreference}
      user: {username: ada, groups: [g]}
      time: "2026-06-01T12:00:00Z"
      namespaceLabels: {tier: gold}
      namespaceAnnotations: {owner: ada}
    parameters: {strategy: Halted}
    data: {images: [a, 1]}
    deny: ["no"]
    warn: [careful]
`

func TestAPolicyIsStoredAsItIsWritten(t *testing.T) {
	must(t, fullPolicy, "apply", "--server-side", "-f", "-")
	got := kubectl(t, "", "get", "vmpol", "full", "-o", "json")
	// Compared as JSON: a fixture retains the order of its keys in memory.
	var stored, written struct{ Spec any }
	if err := json.Unmarshal([]byte(got.Stdout), &stored); err != nil {
		t.Fatal(err, got.Stderr)
	}
	if err := yaml.Unmarshal([]byte(fullPolicy), &written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written.Spec, stored.Spec); diff != "" {
		t.Errorf("spec (-written +stored):\n%s", diff)
	}
	if err := yaml.UnmarshalStrict([]byte(got.Stdout), &v1alpha1.VirtualMachinePolicy{}); err != nil {
		t.Errorf("the types do not have every field: %v", err)
	}
}

func TestTheLeastPolicyHasDefaults(t *testing.T) {
	const least = `{apiVersion: stencil.kubevirt.io/v1alpha1, kind: VirtualMachinePolicy, metadata: {name: least}, spec: {rego: package x}}`
	must(t, least, "apply", "-f", "-")
	got := kubectl(t, "", "get", "vmpol", "least", "-o", "jsonpath={.spec}")
	want := `{"enforcement":"Deny","failureMode":"Deny","match":{"kinds":["VirtualMachine"],"operations":["CREATE","UPDATE"]},"rego":"package x","timeoutMilliseconds":100}`
	if diff := cmp.Diff(want, got.Stdout); diff != "" {
		t.Errorf("spec (-want +got):\n%s\n%s", diff, got.Stderr)
	}
}

func TestTheStatusOfAPolicyShowsInColumns(t *testing.T) {
	must(t, strings.Replace(fullPolicy, "name: full", "name: columns", 1), "apply", "-f", "-")
	const condition = `{"type":"%s","status":"%s","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`
	status := `{"status":{"conditions":[` + fmt.Sprintf(condition, "Compiled", "True") + `,` + fmt.Sprintf(condition, "Tested", "False") + `,` +
		fmt.Sprintf(condition, "Active", "Unknown") + `],"audit":{"violating":4},"evaluations":{"p99Microseconds":87},"severity":"high","title":"No_trouble"}}`
	must(t, "", "patch", "vmpol", "columns", "--subresource=status", "--type=merge", "-p", status)
	got := kubectl(t, "", "get", "virtualmachinepolicies", "columns", "-o", "wide")
	lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
	if len(lines) != 2 {
		t.Fatal(got.Stdout, got.Stderr)
	}
	if diff := cmp.Diff([]string{"NAME", "ENFORCEMENT", "COMPILED", "TESTED", "ACTIVE", "VIOLATING", "P99US", "SEVERITY", "TITLE", "AGE"}, strings.Fields(lines[0])); diff != "" {
		t.Error(diff)
	}
	values := strings.Fields(lines[1])
	if diff := cmp.Diff([]string{"columns", "Warn", "True", "False", "Unknown", "4", "87", "high", "No_trouble"}, values[:len(values)-1]); diff != "" {
		t.Error(diff)
	}
}

func TestPartsOfAPolicysStatusHaveOwners(t *testing.T) {
	must(t, strings.Replace(fullPolicy, "name: full", "name: owners", 1), "apply", "-f", "-")
	apply := func(manager, status string) {
		t.Helper()
		object := `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"VirtualMachinePolicy","metadata":{"name":"owners"},"status":` + status + `}`
		must(t, object, "apply", "--server-side", "--subresource=status", "--field-manager="+manager, "-f", "-")
	}
	const now = "2026-01-01T00:00:00Z"
	apply(v1alpha1.FieldManagerPolicyStatus, `{"observedGeneration":1,"title":"T","evaluations":{"count":3}}`)
	apply(v1alpha1.FieldManagerPolicyAudit, `{"audit":{"violating":1,"violations":[{"namespace":"a","name":"b","cause":"c"}]}}`)
	apply(v1alpha1.FieldManagerPolicyTemplates, `{"templates":{"checked":2,"noncompliant":0}}`)
	apply(v1alpha1.FieldManagerPolicyReplica+"one", `{"replicas":[{"name":"one","count":1,"lastUpdateTime":"`+now+`"}]}`)
	apply(v1alpha1.FieldManagerPolicyReplica+"two", `{"replicas":[{"name":"two","count":2,"lastUpdateTime":"`+now+`"}]}`)
	// Each applies again, and removes only the fields that it no longer applies.
	apply(v1alpha1.FieldManagerPolicyStatus, `{"observedGeneration":2}`)
	apply(v1alpha1.FieldManagerPolicyReplica+"one", `{}`)
	got := kubectl(t, "", "get", "vmpol", "owners", "-o", "jsonpath={.status}")
	want := `{"audit":{"violating":1,"violations":[{"cause":"c","name":"b","namespace":"a"}]},"observedGeneration":2,` +
		`"replicas":[{"count":2,"lastUpdateTime":"` + now + `","name":"two"}],"templates":{"checked":2,"noncompliant":0}}`
	if diff := cmp.Diff(want, got.Stdout); diff != "" {
		t.Errorf("status (-want +got):\n%s\n%s", diff, got.Stderr)
	}
}

func TestWhatTheAPIServerRefusesOfAPolicy(t *testing.T) {
	with := func(more string) string { return `{"rego":"package x",` + more + `}` }
	many := func(n int, item string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	source := strings.Repeat("# 5678901234567\n", 4096)
	for _, tc := range []struct {
		name, spec string
		want       string // in the rejection; none is expected when empty
	}{
		{name: "64 KiB of Rego", spec: fmt.Sprintf(`{"rego":%q}`, source)},
		{name: "more than 64 KiB of Rego", spec: fmt.Sprintf(`{"rego":%q}`, source+"#"), want: "spec.rego: Too long"},
		{name: "the most there can be", spec: with(`"match":{"namespaceSelector":{"matchExpressions":` + many(16, `{"key":"k#","operator":"In","values":["a","b"]}`) + `},` +
			`"templates":` + many(64, `{"namespace":"golden","name":"t#"}`) + `,"subjects":{"include":` + many(128, `{"kind":"User","name":"u#"}`) + `}},` +
			`"tests":` + many(64, `{"name":"t#","input":{"object":{}},"deny":["a"]}`))},
		{name: "no Rego", spec: `{}`, want: "spec.rego: Required value"},
		{name: "empty Rego", spec: `{"rego":""}`, want: "spec.rego"},
		{name: "an operation that there is not", spec: with(`"match":{"operations":["CONNECT"]}`), want: "spec.match.operations[0]: Unsupported value"},
		{name: "no operations", spec: with(`"match":{"operations":[]}`), want: "spec.match.operations"},
		{name: "an operation twice", spec: with(`"match":{"operations":["CREATE","CREATE"]}`), want: "Duplicate value"},
		{name: "a kind that no policy judges", spec: with(`"match":{"kinds":["Pod"]}`), want: "spec.match.kinds[0]: Unsupported value"},
		{name: "templates without machines", spec: with(`"match":{"kinds":["VirtualMachineTemplate"],"templates":[{"namespace":"a"}]}`), want: "templates are those of VirtualMachines"},
		{name: "a template with name and selector", spec: with(`"match":{"templates":[{"namespace":"a","name":"b","selector":{}}]}`), want: "only one of name and selector"},
		{name: "a template without namespace", spec: with(`"match":{"templates":[{"name":"b"}]}`), want: "spec.match.templates[0].namespace: Required value"},
		{name: "a selector that Kubernetes would not take", spec: with(`"match":{"objectSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}}`), want: "need values"},
		{name: "a service account without namespace", spec: with(`"match":{"subjects":{"include":[{"kind":"ServiceAccount","name":"x"}]}}`), want: "a ServiceAccount needs a namespace"},
		{name: "parameters that are no object", spec: with(`"parameters":["a"]`), want: "spec.parameters: Invalid value"},
		{name: "a schema that is no object", spec: with(`"parametersSchema":true`), want: "spec.parametersSchema: Invalid value"},
		{name: "16 data", spec: with(`"data":` + many(16, `{"name":"d#","configMapKey":{"name":"a","key":"b"}}`))},
		{name: "17 data", spec: with(`"data":` + many(17, `{"name":"d#","configMapKey":{"name":"a","key":"b"}}`)), want: "spec.data: Too many"},
		{name: "two data of one name", spec: with(`"data":` + many(2, `{"name":"a","configMapKey":{"name":"a#","key":"b"}}`)), want: "Duplicate value"},
		{name: "data of nothing", spec: with(`"data":[{"name":"a"}]`), want: "spec.data[0]: Invalid value: exactly one of configMapKey, virtualMachines and resourceQuota must be given"},
		{name: "data of two sources", spec: with(`"data":[{"name":"a","virtualMachines":{},"resourceQuota":{"name":"b"}}]`), want: "spec.data[0]: Invalid value: exactly one of configMapKey, virtualMachines and resourceQuota must be given"},
		{name: "data of all VirtualMachines", spec: with(`"data":[{"name":"a","virtualMachines":{}}]`)},
		{name: "data of selected VirtualMachines", spec: with(`"data":[{"name":"a","virtualMachines":{"selector":{"matchLabels":{"gpu":"a100"}}}}]`)},
		{name: "data of VirtualMachines by an incomplete selector", spec: with(`"data":[{"name":"a","virtualMachines":{"selector":{"matchExpressions":[{"key":"gpu","operator":"In"}]}}}]`), want: "spec.data[0].virtualMachines.selector.matchExpressions[0].values: Invalid value: operators In and NotIn need values"},
		{name: "data of a ResourceQuota", spec: with(`"data":[{"name":"a","resourceQuota":{"name":"team"}}]`)},
		{name: "data of a ResourceQuota elsewhere", spec: with(`"data":[{"name":"a","resourceQuota":{"name":"a/b"}}]`), want: "spec.data[0].resourceQuota.name: Invalid value"},
		{name: "data whose name is no name of Rego", spec: with(`"data":[{"name":"a-b","configMapKey":{"name":"a","key":"b"}}]`), want: "spec.data[0].name: Invalid value"},
		{name: "data of a ConfigMap elsewhere", spec: with(`"data":[{"name":"a","configMapKey":{"name":"a/b","key":"b"}}]`), want: "spec.data[0].configMapKey.name: Invalid value"},
		{name: "data of no key", spec: with(`"data":[{"name":"a","configMapKey":{"name":"a"}}]`), want: "spec.data[0].configMapKey.key: Required value"},
		{name: "an enforcement that there is not", spec: with(`"enforcement":"Ignore"`), want: "spec.enforcement: Unsupported value"},
		{name: "a failure mode that there is not", spec: with(`"failureMode":"Warn"`), want: "spec.failureMode: Unsupported value"},
		{name: "no time at all", spec: with(`"timeoutMilliseconds":0`), want: "spec.timeoutMilliseconds"},
		{name: "too much time", spec: with(`"timeoutMilliseconds":501`), want: "spec.timeoutMilliseconds"},
		{name: "65 tests", spec: with(`"tests":` + many(65, `{"name":"t#","input":{"object":{}}}`)), want: "spec.tests: Too many"},
		{name: "two tests of one name", spec: with(`"tests":[{"name":"a","input":{"object":{}}},{"name":"a","input":{"object":{}}}]`), want: "Duplicate value"},
		{name: "a test without name", spec: with(`"tests":[{"input":{"object":{}}}]`), want: "spec.tests[0].name: Required value"},
		{name: "a test about nothing", spec: with(`"tests":[{"name":"a","input":{}}]`), want: "object or, for a DELETE, oldObject must be given"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"VirtualMachinePolicy","metadata":{"name":"refused"},"spec":` + tc.spec + `}`
			got := kubectl(t, object, "create", "--dry-run=server", "-f", "-")
			switch {
			case tc.want == "" && got.Code != 0:
				t.Error(got.Stderr)
			case tc.want != "" && (got.Code == 0 || !strings.Contains(got.Stderr, tc.want)):
				t.Errorf("got exit code %d and %q, want a refusal with %q", got.Code, got.Stderr, tc.want)
			}
		})
	}
}
