package spec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

func read(t *testing.T, spec string) (*Spec, []string) {
	t.Helper()
	policy := &v1alpha1.VirtualMachinePolicy{}
	policy.Name = "one"
	if err := yaml.UnmarshalStrict([]byte(spec), &policy.Spec); err != nil {
		t.Fatal(err)
	}
	s, problems := Read(policy)
	var messages []string
	for _, problem := range problems {
		messages = append(messages, problem.Error())
	}
	return s, messages
}

func TestAPolicyThatSaysNothingHasTheDefaultsOfTheDefinition(t *testing.T) {
	got, problems := read(t, "rego: package x")
	want := &Spec{
		Definition:  rego.Definition{Name: "one", Source: "package x", Parameters: map[string]any{}, Kinds: []string{"VirtualMachine"}},
		Match:       policyset.Match{Operations: []string{"CREATE", "UPDATE"}, Kinds: []string{"VirtualMachine"}},
		Enforcement: "Deny", FailureMode: "Deny", Timeout: 100 * time.Millisecond,
	}
	if diff := cmp.Diff(want, got); diff != "" || problems != nil {
		t.Errorf("spec (-want +got):\n%s\nproblems: %q", diff, problems)
	}
}

func TestEverythingThatAPolicySaysIsRead(t *testing.T) {
	got, problems := read(t, `
rego: package x
parameters: {maximum: 9007199254740993, names: [a], nested: {deep: true}}
parametersSchema: {type: object}
match:
  operations: [DELETE]
  kinds: [VirtualMachineTemplate, VirtualMachine]
  namespaceSelector: {matchLabels: {tier: gold}}
  objectSelector: {matchExpressions: [{key: a, operator: NotIn, values: [b]}]}
  templates: [{namespace: golden, name: fedora}, {namespace: other, selector: {matchLabels: {os: linux}}}]
  subjects: {include: [{kind: Group, name: g}], exclude: [{kind: User, name: u}]}
enforcement: Warn
failureMode: Allow
timeoutMilliseconds: 7
`)
	if problems != nil {
		t.Fatal(problems)
	}
	if got.Definition.Parameters["maximum"] != int64(9007199254740993) {
		t.Errorf("maximum is %v, a %[1]T", got.Definition.Parameters["maximum"])
	}
	if diff := cmp.Diff(map[string]any{"type": "object"}, got.Definition.Schema); diff != "" {
		t.Error(diff)
	}
	m := got.Match
	var templates []string
	for _, each := range m.Templates {
		selector := ""
		if each.Selector != nil {
			selector = each.Selector.String()
		}
		templates = append(templates, each.Namespace+"/"+each.Name+"["+selector+"]")
	}
	for what, pair := range map[string][2]any{
		"operations":  {[]string{"DELETE"}, m.Operations},
		"kinds":       {[]string{"VirtualMachineTemplate", "VirtualMachine"}, m.Kinds},
		"namespaces":  {"tier=gold", m.Namespaces.String()},
		"objects":     {"a notin (b)", m.Objects.String()},
		"templates":   {[]string{"golden/fedora[]", "other/[os=linux]"}, templates},
		"include":     {[]v1alpha1.Subject{{Kind: "Group", Name: "g"}}, m.Include},
		"exclude":     {[]v1alpha1.Subject{{Kind: "User", Name: "u"}}, m.Exclude},
		"enforcement": {policyset.EnforcementWarn, got.Enforcement},
		"failureMode": {policyset.FailureModeAllow, got.FailureMode},
		"timeout":     {7 * time.Millisecond, got.Timeout},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// instance is the VirtualMachine that is equivalent to an instance.
func instance(metadata map[string]any, x int64) map[string]any {
	seen, _ := machine.View(machine.KindInstance, map[string]any{"metadata": metadata, "spec": map[string]any{"x": x}})
	return seen
}

func TestTests(t *testing.T) {
	vm := map[string]any{"kind": "VirtualMachine", "metadata": map[string]any{"name": "a", "namespace": "team"}}
	cases := map[string]struct {
		test string
		want suite.Case
	}{
		"an object alone is created": {
			test: "input: {object: {kind: VirtualMachine, metadata: {name: a, namespace: team}}}",
			want: suite.Case{Document: rego.Document{
				Request: rego.Request{Operation: "CREATE", Kind: "VirtualMachine", Name: "a", Namespace: "team"},
				Object:  vm, Namespace: rego.Namespace{Name: "team"},
			}},
		},
		"an object and what it was are an update": {
			test: "input: {object: {spec: 1}, oldObject: {spec: 2}}",
			want: suite.Case{Document: rego.Document{
				Request: rego.Request{Operation: "UPDATE", Kind: "VirtualMachine"},
				Object:  map[string]any{"spec": int64(1)}, OldObject: map[string]any{"spec": int64(2)},
			}},
		},
		"what it was alone is deleted": {
			test: "input: {oldObject: {kind: VirtualMachine, metadata: {name: a, namespace: team}}}",
			want: suite.Case{Document: rego.Document{
				Request:   rego.Request{Operation: "DELETE", Kind: "VirtualMachine", Name: "a", Namespace: "team"},
				OldObject: vm, Namespace: rego.Namespace{Name: "team"},
			}},
		},
		"what runs a machine is one": {
			test: "input: {object: {kind: VirtualMachineInstance, metadata: {name: a, namespace: team}, spec: {x: 1}}, oldObject: {spec: {x: 2}}}",
			want: suite.Case{Document: rego.Document{
				Request:   rego.Request{Operation: "UPDATE", Kind: "VirtualMachine", RequestKind: "VirtualMachineInstance", Name: "a", Namespace: "team"},
				Object:    instance(map[string]any{"name": "a", "namespace": "team"}, 1),
				OldObject: instance(nil, 2),
				Namespace: rego.Namespace{Name: "team"},
			}},
		},
		"what policies read is a test's input": {
			test: `
input:
  request:
    operation: UPDATE
    kind: VirtualMachine
    requestKind: VirtualMachineInstance
    namespace: team
    name: a
    userInfo: {username: ada, uid: u, groups: [g], extra: {e: [x]}}
    dryRun: true
    time: "2026-06-01T12:00:00Z"
  namespace: {name: team, labels: {tier: gold}, annotations: {owner: ada}}
  object: {metadata: {name: a}}`,
			want: suite.Case{Document: rego.Document{
				Request: rego.Request{
					Operation: "UPDATE", Kind: "VirtualMachine", RequestKind: "VirtualMachineInstance", Namespace: "team", Name: "a", DryRun: true, Time: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
					UserInfo: rego.UserInfo{Username: "ada", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"e": {"x"}}},
				},
				Object:    map[string]any{"metadata": map[string]any{"name": "a"}},
				Namespace: rego.Namespace{Name: "team", Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"owner": "ada"}},
			}},
		},
		"everything that a test can say": {
			test: `
input:
  operation: UPDATE
  object: {kind: VirtualMachineTemplate}
  template: {namespace: golden, name: fedora, labels: {a: b}, annotations: {c: d}, parameters: [{name: P, required: true, type: int, enum: ["1"]}]}
  parameters: {P: "1"}
  instancetype: {kind: VirtualMachineClusterInstancetype}
  preference: {kind: VirtualMachinePreference}
  objects: [{kind: Secret}, {kind: Service}]
  user: {username: ada, groups: [g]}
  time: "2026-06-01T12:00:00Z"
  namespaceLabels: {tier: gold}
  namespaceAnnotations: {owner: ada}
parameters: {maximum: 3}
deny: ["no"]
warn: [careful]`,
			want: suite.Case{
				Document: rego.Document{
					Request: rego.Request{Operation: "UPDATE", Kind: "VirtualMachineTemplate", UserInfo: rego.UserInfo{Username: "ada", Groups: []string{"g"}}, Time: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)},
					Object:  map[string]any{"kind": "VirtualMachineTemplate"},
					Template: &rego.Template{
						Namespace: "golden", Name: "fedora", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
						Parameters: []rego.TemplateParameter{{Name: "P", Required: true, Type: "int", Enum: []string{"1"}}},
					},
					Parameters:   map[string]string{"P": "1"},
					Instancetype: map[string]any{"kind": "VirtualMachineClusterInstancetype"},
					Preference:   map[string]any{"kind": "VirtualMachinePreference"},
					Objects:      []map[string]any{{"kind": "Secret"}, {"kind": "Service"}},
					Namespace:    rego.Namespace{Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"owner": "ada"}},
				},
				Parameters: map[string]any{"maximum": int64(3)},
				Deny:       []string{"no"}, Warn: []string{"careful"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var test v1alpha1.PolicyTest
			if err := yaml.UnmarshalStrict([]byte(tc.test), &test); err != nil {
				t.Fatal(err)
			}
			policy := &v1alpha1.VirtualMachinePolicy{Spec: v1alpha1.VirtualMachinePolicySpec{Tests: []v1alpha1.PolicyTest{test}}}
			got, problems := Read(policy)
			if diff := cmp.Diff([]suite.Case{tc.want}, got.Cases); diff != "" || problems != nil {
				t.Errorf("case (-want +got):\n%s\nproblems: %v", diff, problems)
			}
		})
	}
}

func TestWhatCannotBeReadIsSaidWithItsPlace(t *testing.T) {
	_, problems := read(t, `
rego: package x
parameters: [1]
parametersSchema: text
match: {namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}}
tests:
- {name: first, input: {object: 3, template: {metadata: {name: fedora}}}}
- name: twice
  input:
    operation: CREATE
    user: {username: ada}
    time: "2026-06-01T12:00:00Z"
    namespaceLabels: {a: b}
    namespaceAnnotations: {a: b}
    request: {operation: UPDATE, kind: VirtualMachineTemplate, namespace: other, name: b, userInfo: {username: eve}, time: "2026-06-01T12:00:00Z"}
    namespace: {name: third, labels: {}, annotations: {c: d}}
    object: {kind: VirtualMachine, metadata: {name: a, namespace: team}}
`)
	want := []string{
		`spec.parameters: Invalid value: must be a JSON object`,
		`spec.parametersSchema: Invalid value: must be a JSON object`,
		`spec.match.namespaceSelector: Invalid value: "Is" is not a valid label selector operator`,
		`spec.tests[0].input.object: Invalid value: must be a JSON object`,
		`spec.tests[0].input.template: Invalid value: must be what policies read as input.template, with namespace, name, labels, annotations and parameters: json: unknown field "metadata"`,
		`spec.tests[1].input.request.operation: Invalid value: "UPDATE": spec.tests[1].input.operation is "CREATE"`,
		`spec.tests[1].input.request.kind: Invalid value: "VirtualMachineTemplate": spec.tests[1].input.object.kind is "VirtualMachine"`,
		`spec.tests[1].input.request.time: Invalid value: spec.tests[1].input.time gives it as well; keep one of them`,
		`spec.tests[1].input.request.name: Invalid value: "b": spec.tests[1].input.object.metadata.name is "a"`,
		`spec.tests[1].input.namespace.name: Invalid value: "third": spec.tests[1].input.object.metadata.namespace is "team"`,
		`spec.tests[1].input.request.namespace: Invalid value: "other": spec.tests[1].input.namespace.name is "third"`,
		`spec.tests[1].input.namespace.labels: Invalid value: spec.tests[1].input.namespaceLabels gives it as well; keep one of them`,
		`spec.tests[1].input.namespace.annotations: Invalid value: spec.tests[1].input.namespaceAnnotations gives it as well; keep one of them`,
		`spec.tests[1].input.request.userInfo: Invalid value: spec.tests[1].input.user gives it as well; keep one of them`,
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestDataOfAPolicyIsRead(t *testing.T) {
	got, problems := read(t, `
rego: package x
data:
- {name: images, configMapKey: {name: allowed, key: list}}
- {name: all, virtualMachines: {}}
- {name: gpus, virtualMachines: {selector: {matchLabels: {tier: web}, matchExpressions: [{key: gpu, operator: In, values: [h100, a100]}]}}}
- {name: quota, resourceQuota: {name: team}}
- {name: wrong, virtualMachines: {selector: {matchExpressions: [{key: "a b", operator: Exists}]}}}
`)
	want := []rego.Reference{
		{Name: "images", ConfigMap: "allowed", Key: "list"},
		{Name: "all", VirtualMachines: &rego.VirtualMachines{}},
		{Name: "gpus", VirtualMachines: &rego.VirtualMachines{Selector: "gpu in (a100,h100),tier=web"}},
		{Name: "quota", ResourceQuota: "team"},
		{Name: "wrong", VirtualMachines: &rego.VirtualMachines{}},
	}
	if diff := cmp.Diff(want, got.Definition.Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const problem = `spec.data[4].virtualMachines.selector: Invalid value: key: Invalid value: "a b": name part must consist of alphanumeric characters`
	if len(problems) != 1 || !strings.HasPrefix(problems[0], problem) {
		t.Errorf("problems: %q", problems)
	}
}
