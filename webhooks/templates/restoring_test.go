package templates_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/template/extensions"
	"github.com/vmstencil/stencil/webhooks/templates"
)

const governed = "{virtualMachine: {spec: {a: 9007199254740993}}, parameters: [{name: NAME}, {name: SIZE, type: int, maximum: 9007199254740993}]}"

var ungoverned = strings.Replace(governed, ", type: int, maximum: 9007199254740993", "", 1)

// annotated returns the manifest of a template with annotations.
func annotated(t *testing.T, spec string, annotations map[string]string) string {
	t.Helper()
	encoded, err := json.Marshal(annotations)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("metadata: {name: fedora, namespace: golden, annotations: %s}\nspec: %s", encoded, spec)
}

func held(t *testing.T, spec string) string {
	t.Helper()
	object, err := extensions.Read(fixture.JSON(t, manifest("", spec)))
	if err != nil {
		t.Fatal(err)
	}
	annotation, err := extensions.Encode(extensions.Extract(object.Spec))
	if err != nil {
		t.Fatal(err)
	}
	return annotation
}

// next adds an annotation, and returns what it has received.
type next struct{ received []byte }

func (n *next) Handle(_ context.Context, request admission.Request) admission.Response {
	n.received = request.Object.Raw
	return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/annotations/writer", "ada")).WithWarnings("next")
}

func TestRestoring(t *testing.T) {
	annotation := held(t, governed)
	if !strings.Contains(annotation, "9007199254740993") {
		t.Fatalf("it is not exact: %s", annotation)
	}
	stands := map[string]string{contract.AnnotationExtensions: annotation}
	for _, tc := range []struct {
		name         string
		before       string
		after        string
		want         string
		wantWarnings []string
	}{
		{"a template with extensions gets the annotation", "", manifest("", governed), annotated(t, governed, map[string]string{contract.AnnotationExtensions: annotation, "writer": "ada"}), []string{"next"}},
		{
			"a client of the published API drops them", annotated(t, governed, stands), annotated(t, ungoverned, stands),
			annotated(t, governed, map[string]string{contract.AnnotationExtensions: annotation, "writer": "ada"}),
			[]string{"next", `fields that the published API lacks were restored: spec.parameters[SIZE].maximum, spec.parameters[SIZE].type; to drop them, add annotation template.kubevirt.io/drop-extensions: "true"`},
		},
		{
			"a user drops them", annotated(t, governed, stands), annotated(t, ungoverned, map[string]string{contract.AnnotationExtensions: annotation, contract.AnnotationDropExtensions: "true"}),
			annotated(t, ungoverned, map[string]string{contract.AnnotationDropExtensions: "true", "writer": "ada"}), []string{"next"},
		},
		{"nothing changes the second time", annotated(t, governed, stands), annotated(t, governed, stands), annotated(t, governed, map[string]string{contract.AnnotationExtensions: annotation, "writer": "ada"}), []string{"next"}},
		{"a stored template that is none has none", "spec: 7", annotated(t, ungoverned, map[string]string{"a": "b"}), annotated(t, ungoverned, map[string]string{"a": "b", "writer": "ada"}), []string{"next"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			operation := admissionv1.Update
			if tc.before == "" {
				operation = admissionv1.Create
			}
			request := review(t, operation, tc.after, tc.before)
			request.Resource = metav1.GroupVersionResource{Resource: "virtualmachinetemplates"}
			sent, then := request.Object.Raw, &next{}
			response := templates.NewRestoring(then).Handle(t.Context(), request)
			operations, err := json.Marshal(response.Patches)
			if err != nil {
				t.Fatal(err)
			}
			got := fixture.Patched(t, sent, operations)
			var have, want map[string]any
			if json.Unmarshal(got, &have) != nil || json.Unmarshal(fixture.JSON(t, tc.want), &want) != nil {
				t.Fatalf("no JSON: %s", got)
			}
			delete(have, "apiVersion")
			delete(have, "kind")
			if labels, _ := have["metadata"].(map[string]any); labels != nil {
				delete(labels, "labels")
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			if strings.Contains(tc.want, "maximum") && strings.Count(string(got), "9007199254740993") != 3 {
				t.Errorf("integers are not exact in %s", got)
			}
			if strings.Contains(string(then.received), "writer") || strings.Contains(tc.want, "maximum") != strings.Contains(string(then.received), `"maximum"`) {
				t.Errorf("the next handler received %s", then.received)
			}
			if diff := cmp.Diff(tc.wantWarnings, response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestoringLeavesOtherRequestsAlone(t *testing.T) {
	for name, change := range map[string]func(*admission.Request){
		"a status":               func(r *admission.Request) { r.SubResource = "status" },
		"another kind":           func(r *admission.Request) { r.Resource.Resource = "virtualmachinetemplaterequests" },
		"what cannot be decoded": func(r *admission.Request) { r.Object.Raw = []byte(`{"spec":7}`) },
	} {
		t.Run(name, func(t *testing.T) {
			request := review(t, admissionv1.Create, manifest("", governed), "")
			request.Resource = metav1.GroupVersionResource{Resource: "virtualmachinetemplates"}
			change(&request)
			sent, then := request.Object.Raw, &next{}
			if response := templates.NewRestoring(then).Handle(t.Context(), request); len(response.Patches) != 1 || string(then.received) != string(sent) {
				t.Errorf("got %v, and the next handler %s", response, then.received)
			}
		})
	}
}

type approvals struct {
	syncing bool
	all     []*approval.Approval
}

func (a approvals) Synced() bool                    { return !a.syncing }
func (a approvals) Approvals() []*approval.Approval { return a.all }

func TestExtensionsAreNotLost(t *testing.T) {
	withLimit := strings.Replace(good, "[{name: NAME}]", "[{name: NAME, pattern: '[a-z]+'}]", 1)
	stored := annotated(t, withLimit, map[string]string{contract.AnnotationExtensions: held(t, withLimit)})
	damaged := annotated(t, good, map[string]string{contract.AnnotationExtensions: "hunter2"})
	const lost = `fields that the published API lacks are removed, and so is annotation template.kubevirt.io/extensions, which could restore them: spec.parameters[NAME].pattern; to drop them, add annotation template.kubevirt.io/drop-extensions: "true"`
	const beyondRepair = "fields that the published API lacks cannot be restored from annotation template.kubevirt.io/extensions, because it is no JSON of the expected form: write the fields, or remove the annotation"
	named := fixture.Approval(t, "shop", "{namespaces: [shop], templates: [{namespace: golden, name: fedora}]}")
	labelled := fixture.Approval(t, "labels", "{namespaces: [shop], templates: [{namespace: golden, selector: {matchLabels: {os: fedora}}}]}")
	other := fixture.Approval(t, "other", "{namespaces: [shop], templates: [{namespace: golden, name: windows}]}")
	for _, tc := range []struct {
		name          string
		before, after string
		approvals     approvals
		wantWarning   string
		wantDenial    string
	}{
		{name: "a published template", after: manifest("", good), approvals: approvals{all: []*approval.Approval{named}}},
		{name: "no approval names the template", before: stored, after: manifest("", good), approvals: approvals{all: []*approval.Approval{other}}, wantWarning: lost},
		{
			name: "an approval names it", before: stored, after: manifest("", good), approvals: approvals{all: []*approval.Approval{other, named}},
			wantDenial: `VirtualMachineTemplate.template.kubevirt.io "fedora" is invalid: metadata.annotations[template.kubevirt.io/extensions]: Forbidden: TemplateApproval shop names the template: ` + lost,
		},
		{
			name: "an approval selects it by a label that the request removes", before: strings.Replace(stored, "{name", "{labels: {os: fedora}, name", 1), after: manifest("", good),
			approvals:  approvals{all: []*approval.Approval{labelled}},
			wantDenial: `VirtualMachineTemplate.template.kubevirt.io "fedora" is invalid: metadata.annotations[template.kubevirt.io/extensions]: Forbidden: TemplateApproval labels names the template: ` + lost,
		},
		{name: "a user drops them", before: stored, after: annotated(t, good, map[string]string{contract.AnnotationDropExtensions: "true"}), approvals: approvals{all: []*approval.Approval{named}}},
		{name: "a damaged annotation", after: damaged, approvals: approvals{}, wantWarning: beyondRepair},
		{
			name: "a damaged annotation of a template that an approval names", after: damaged, approvals: approvals{all: []*approval.Approval{named}},
			wantDenial: `VirtualMachineTemplate.template.kubevirt.io "fedora" is invalid: metadata.annotations[template.kubevirt.io/extensions]: Forbidden: TemplateApproval shop names the template: ` + beyondRepair,
		},
		{name: "approvals are unknown", after: damaged, approvals: approvals{syncing: true}, wantDenial: "the approvals that name the template are unknown: the cache is not synced; try again in a moment"},
		{
			name: "the mutating webhook did not answer", before: stored, after: strings.Replace(stored, ", pattern: '[a-z]+'", "", 1), approvals: approvals{},
			wantDenial: "fields that the published API lacks have not been restored: spec.parameters[NAME].pattern; try again in a moment",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			operation := admissionv1.Update
			if tc.before == "" {
				operation = admissionv1.Create
			}
			request := review(t, operation, tc.after, tc.before)
			request.Namespace = "golden"
			response := templates.New(templates.Options{Approvals: tc.approvals}).Handle(t.Context(), request)
			if got := strings.Join(response.Warnings, "\n"); got != tc.wantWarning {
				t.Errorf("warnings %s, want %s", got, tc.wantWarning)
			}
			denial := ""
			if !response.Allowed {
				denial = response.Result.Message
			}
			if denial != tc.wantDenial {
				t.Errorf("denied with %s, want %s", denial, tc.wantDenial)
			}
		})
	}
}
