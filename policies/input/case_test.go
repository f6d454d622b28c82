package input_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// box is a template with a sensitive parameter, which is generated, and one with a default.
const box = `
spec:
  parameters:
  - {name: NAME}
  - {name: SIZE, value: small, enum: [small, huge], required: true}
  - {name: PASSWORD, generate: expression, from: "[a-z]{8}", sensitive: true}
  - {name: TOKEN, value: hush, enum: [hush, hushhush], sensitive: true}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      instancetype: {name: "${SIZE}"}
      template:
        metadata: {annotations: {token: "${TOKEN}"}}
        spec:
          domain: {devices: {}}
          volumes:
          - {name: init, cloudInitNoCloud: {userData: "password: ${PASSWORD}"}}
`

func compiled(t testing.TB) *template.Compiled {
	t.Helper()
	var object v1beta1.VirtualMachineTemplate
	parse(t, box, &object)
	c, err := template.Compile(&object)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t testing.TB, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var o map[string]any
	parse(t, text, &o)
	return o
}

// web is a VirtualMachine of box.
const web = `
metadata:
  name: web-1
  namespace: team-a
  labels: {app: web}
  annotations:
    template.kubevirt.io/template-ref: golden/box
    parameter.template.kubevirt.io/SIZE: huge
    template.kubevirt.io/rendered: '{"namespace":"golden","name":"box","uid":"uid","generation":7,"sensitive":["TOKEN"]}'
spec:
  runStrategy: Halted
  instancetype: {name: huge}
  template:
    metadata: {annotations: {token: hushhush}}
    spec:
      domain: {devices: {}}
      volumes:
      - {name: init, cloudInitNoCloud: {userData: "password: abcdefgh"}}
`

func TestQuery(t *testing.T) {
	ada := rego.UserInfo{Username: "ada", Groups: []string{"team-a"}}
	c := policyinput.Case{
		Request:   rego.Request{Operation: "UPDATE", Kind: "VirtualMachine", Namespace: "team-a", Name: "web-1", UserInfo: ada},
		Object:    object(t, `{metadata: {labels: {app: web}}}`),
		OldObject: object(t, `{metadata: {labels: {app: web, tier: gold}}}`),
		Namespace: rego.Namespace{Name: "team-a", Labels: map[string]string{"env": "prod"}},
		Template:  &policyinput.Template{Namespace: "golden", Name: "box", Labels: map[string]string{"os": "linux"}},
	}
	want := policyset.Query{
		Operation: "UPDATE", Kind: "VirtualMachine", Namespace: "team-a",
		NamespaceLabels: labels.Set{"env": "prod"},
		ObjectLabels:    labels.Set{"app": "web"},
		OldObjectLabels: labels.Set{"app": "web", "tier": "gold"},
		Template:        &policyset.TemplateRef{Namespace: "golden", Name: "box", Labels: labels.Set{"os": "linux"}},
		User:            ada,
		HasUser:         true,
	}
	if diff := cmp.Diff(want, c.Query()); diff != "" {
		t.Error(diff)
	}
	c = policyinput.Case{Request: c.Request, IgnoreSubjects: true}
	if diff := cmp.Diff(policyset.Query{Operation: "UPDATE", Kind: "VirtualMachine", Namespace: "team-a", User: ada}, c.Query()); diff != "" {
		t.Error(diff)
	}
}

func TestDocument(t *testing.T) {
	declared := []rego.TemplateParameter{
		{Name: "NAME"},
		{Name: "SIZE", Value: "small", Enum: []string{"small", "huge"}, Required: true},
		{Name: "PASSWORD", Sensitive: true, Generate: "expression"},
		{Name: "TOKEN", Sensitive: true, Value: "***"},
	}
	now := &metav1.ObjectMeta{UID: "uid", Labels: map[string]string{"os": "linux"}, Annotations: map[string]string{"deprecated": "yes"}}
	for _, tc := range []struct {
		name           string
		operation      string
		now            *metav1.ObjectMeta
		compiled       bool
		want           *rego.Template
		wantParameters map[string]string
	}{
		{
			name: "the values that the machine shows, the sensitive ones masked", operation: "CREATE", now: now, compiled: true,
			want:           &rego.Template{Namespace: "golden", Name: "box", Labels: now.Labels, Annotations: now.Annotations, Parameters: declared},
			wantParameters: map[string]string{"NAME": "web-1", "SIZE": "huge", "PASSWORD": "***", "TOKEN": "***"},
		},
		{
			name: "those of the machine that is deleted", operation: "DELETE", now: now, compiled: true,
			want:           &rego.Template{Namespace: "golden", Name: "box", Labels: now.Labels, Annotations: now.Annotations, Parameters: declared},
			wantParameters: map[string]string{"NAME": "web-1", "SIZE": "huge", "PASSWORD": "***", "TOKEN": "***"},
		},
		{
			name: "of a template that is gone, what its owner gave", operation: "CREATE",
			want:           &rego.Template{Namespace: "golden", Name: "box"},
			wantParameters: map[string]string{"SIZE": "huge"},
		},
		{
			name: "another template of the same name has nothing to do with it", operation: "CREATE", now: &metav1.ObjectMeta{UID: "other", Labels: now.Labels}, compiled: true,
			want:           &rego.Template{Namespace: "golden", Name: "box"},
			wantParameters: map[string]string{"SIZE": "huge"},
		},
		{
			name: "one that does not compile has labels and no parameters", operation: "CREATE", now: now,
			want:           &rego.Template{Namespace: "golden", Name: "box", Labels: now.Labels, Annotations: now.Annotations},
			wantParameters: map[string]string{"SIZE": "huge"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vm := object(t, web)
			origin, found := policyinput.OriginOf(vm, "team-a")
			if !found {
				t.Fatal("it comes from nowhere")
			}
			var content *template.Compiled
			if tc.compiled {
				content = compiled(t)
			}
			c := policyinput.Case{Request: rego.Request{Operation: tc.operation, Kind: "VirtualMachine", Namespace: "team-a"}, Template: origin.Template(tc.now, content)}
			if tc.operation == "DELETE" {
				c.OldObject = vm
			} else {
				c.Object = vm
			}
			d := c.Document()
			if diff := cmp.Diff(tc.want, d.Template); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.wantParameters, d.Parameters); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOriginOf(t *testing.T) {
	for _, tc := range []struct {
		name, annotations string
		want              *machine.Reference
	}{
		{"the record counts before the reference", `{template.kubevirt.io/template-ref: other, template.kubevirt.io/rendered: '{"namespace":"golden","name":"box"}'}`, &machine.Reference{Namespace: "golden", Name: "box"}},
		{"a reference without a namespace means that of the machine", `{template.kubevirt.io/template-ref: box}`, &machine.Reference{Namespace: "team-a", Name: "box"}},
		{"a reference that names no template is none", `{template.kubevirt.io/template-ref: "a/b/c"}`, nil},
		{"a record without a reference is none", `{template.kubevirt.io/rendered: '{"namespace":"golden","name":"box"}'}`, nil},
		{"no annotations", `{}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vm := object(t, "metadata: {annotations: "+tc.annotations+"}")
			origin, found := policyinput.OriginOf(vm, "team-a")
			if found != (tc.want != nil) {
				t.Fatalf("found: %t", found)
			}
			if found && origin.Reference != *tc.want {
				t.Errorf("got %v", origin.Reference)
			}
		})
	}
}

// catalogue holds objects by the text of the references to them, and records the calls.
type catalogue struct {
	known map[string]map[string]any
	asked []sizing.Reference
}

func (c *catalogue) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	r.Path = nil
	c.asked = append(c.asked, r)
	if found := c.known[r.String()]; found != nil {
		return found, nil
	}
	return nil, errors.New("it does not exist")
}

func TestResolve(t *testing.T) {
	small := map[string]any{"kind": "VirtualMachineClusterInstancetype"}
	for _, tc := range []struct {
		name      string
		vm        string
		operation string
		kind      string
		known     map[string]map[string]any
		want      map[string]any
		wantAsked []sizing.Reference
		wantError string
	}{
		{name: "a machine without either", vm: `{spec: {}}`},
		{
			name: "the cluster's when no kind is given", vm: `{spec: {instancetype: {name: small}}}`,
			known: map[string]map[string]any{"VirtualMachineClusterInstancetype small": small}, want: small,
			wantAsked: []sizing.Reference{{Kind: sizing.KindClusterInstancetype, Namespace: "team-a", Name: "small"}},
		},
		{
			name: "kinds in any case and in the plural", vm: `{spec: {instancetype: {kind: virtualMachineInstancetypes, name: small}}}`,
			known: map[string]map[string]any{"VirtualMachineInstancetype team-a/small": small}, want: small,
			wantAsked: []sizing.Reference{{Kind: sizing.KindInstancetype, Namespace: "team-a", Name: "small"}},
		},
		{
			name: "a revision in the spec counts", vm: `{spec: {instancetype: {name: small, revisionName: of-then}}, status: {instancetypeRef: {controllerRevisionRef: {name: other}}}}`,
			known: map[string]map[string]any{"ControllerRevision team-a/of-then": small}, want: small,
			wantAsked: []sizing.Reference{{Kind: sizing.KindClusterInstancetype, Namespace: "team-a", Name: "small", Revision: "of-then"}},
		},
		{
			name: "or else one in the status", vm: `{spec: {instancetype: {name: small}}, status: {instancetypeRef: {name: small, controllerRevisionRef: {name: of-then}}}}`,
			known: map[string]map[string]any{"VirtualMachineClusterInstancetype small": small}, want: small,
			wantAsked: []sizing.Reference{{Kind: sizing.KindClusterInstancetype, Namespace: "team-a", Name: "small", Revision: "of-then", Loose: true}},
		},
		{
			name: "what does not exist", vm: `{spec: {instancetype: {name: small}, preference: {name: linux}}}`,
			wantAsked: []sizing.Reference{
				{Kind: sizing.KindClusterInstancetype, Namespace: "team-a", Name: "small"},
				{Kind: sizing.KindClusterPreference, Namespace: "team-a", Name: "linux"},
			},
			wantError: `[spec.instancetype: Not found: "VirtualMachineClusterInstancetype small": it does not exist, spec.preference: Not found: "VirtualMachineClusterPreference linux": it does not exist]`,
		},
		{
			name: "is no error on the way out", vm: `{spec: {instancetype: {name: small}}}`, operation: "DELETE",
			wantAsked: []sizing.Reference{{Kind: sizing.KindClusterInstancetype, Namespace: "team-a", Name: "small"}},
		},
		{
			name: "a kind that there is not", vm: `{spec: {instancetype: {kind: Pod, name: small}}}`,
			wantError: `spec.instancetype.kind: Unsupported value: "Pod": supported values: "VirtualMachineClusterInstancetype", "VirtualMachineInstancetype"`,
		},
		{
			name: "a volume to infer it from", vm: `{spec: {preference: {inferFromVolume: root}}}`,
			wantError: "spec.preference.name: Required value: it has not been inferred from a volume yet",
		},
		{name: "something else", vm: `{spec: {instancetype: small}}`, wantError: `spec.instancetype: Invalid value: "string": must be an object`},
		{name: "templates have none", vm: `{spec: {instancetype: {name: small}}}`, kind: "VirtualMachineTemplate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := policyinput.Case{Request: rego.Request{Operation: "CREATE", Kind: "VirtualMachine", Namespace: "team-a"}, Object: object(t, tc.vm)}
			if tc.kind != "" {
				c.Request.Kind = tc.kind
			}
			if tc.operation == "DELETE" {
				c.Request.Operation, c.Object, c.OldObject = "DELETE", nil, c.Object
			}
			from := &catalogue{known: tc.known}
			text := ""
			if errs := c.Resolve(t.Context(), from); len(errs) > 0 {
				text = errs.ToAggregate().Error()
			}
			if text != tc.wantError {
				t.Errorf("error %s, want %s", text, tc.wantError)
			}
			if diff := cmp.Diff(tc.want, c.Instancetype); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.wantAsked, from.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}
