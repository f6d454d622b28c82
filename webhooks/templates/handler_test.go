package templates_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/webhooks/templates"
)

const (
	good   = "{virtualMachine: {metadata: {name: '${NAME}'}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}}, parameters: [{name: NAME}]}"
	lots   = "{virtualMachine: {metadata: {name: '${NAME}'}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}, memory: {guest: '${P}'}}}}}}, parameters: [{name: NAME}, {name: P, value: lots}]}"
	broken = "{virtualMachine: {metadata: {name: '${OTHER}'}, spec: {runstrategy: Halted, template: {spec: {domain: {devices: {}}}}}}, parameters: [{name: NAME}]}"
)

func review(t *testing.T, operation admissionv1.Operation, object, old string) admission.Request {
	t.Helper()
	request := fixture.Review(t, operation, object, old)
	request.Name = "fedora"
	return request
}

func manifest(labels, spec string) string {
	return "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplate\nmetadata: {name: fedora, namespace: golden, labels: {" + labels + "}}\nspec: " + spec
}

func TestHandle(t *testing.T) {
	for _, tc := range []struct {
		name         string
		request      func(*testing.T) admission.Request
		wantAllowed  bool
		wantWarnings []string
		wantCode     int32
		wantReason   metav1.StatusReason
		wantFields   []string
	}{
		{
			name:        "a good template is stored",
			request:     func(t *testing.T) admission.Request { return review(t, admissionv1.Create, manifest("", good), "") },
			wantAllowed: true,
		},
		{
			name: "an unused parameter is warned about",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Create, manifest("", strings.Replace(good, "[{name: NAME}]", "[{name: NAME}, {name: SPARE}]", 1)), "")
			},
			wantAllowed:  true,
			wantWarnings: []string{"parameter SPARE is declared and never referred to"},
		},
		{
			name: "one whose own values make no VirtualMachine is denied",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Create, manifest("", lots), "")
			},
			wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantFields: []string{"spec.virtualMachine.spec.template.spec.domain.memory.guest"},
		},
		{
			name: "such a one that is stored can be changed, except for its spec",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Update, manifest("a: b", lots), manifest("", lots))
			},
			wantAllowed: true,
		},
		{
			name: "such a one that is stored can be corrected",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Update, manifest("", strings.Replace(lots, "lots", "2Gi", 1)), manifest("", lots))
			},
			wantAllowed: true,
		},
		{
			name: "a value that is no VirtualMachine is warned about while a required parameter has none",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Create, manifest("", strings.Replace(lots, "{name: NAME}", "{name: NAME, required: true}", 1)), "")
			},
			wantAllowed:  true,
			wantWarnings: []string{`spec.virtualMachine.spec.template.spec.domain.memory.guest: only other values than the template's own make a VirtualMachine: Invalid value: "lots": must be a quantity such as 500m or 2Gi`},
		},
		{
			name:     "a broken one is denied with every cause",
			request:  func(t *testing.T) admission.Request { return review(t, admissionv1.Create, manifest("", broken), "") },
			wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantFields: []string{"spec.virtualMachine.metadata.name", "spec.virtualMachine.spec.runstrategy"},
		},
		{
			name: "a good one that becomes broken is denied",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Update, manifest("", broken), manifest("", good))
			},
			wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantFields: []string{"spec.virtualMachine.metadata.name", "spec.virtualMachine.spec.runstrategy"},
		},
		{
			name: "labels of a broken one that is stored can be changed",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Update, manifest("a: b", broken), manifest("", broken))
			},
			wantAllowed: true,
		},
		{
			name: "malformed rules for the machine are denied, beside what the engine says",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Create, strings.Replace(manifest("", broken), "labels: {}", "annotations: {validations: '[{]'}", 1), "")
			},
			wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantFields: []string{"spec.virtualMachine.metadata.name", "spec.virtualMachine.spec.runstrategy", "metadata.annotations[validations]"},
		},
		{
			name: "rules that become malformed are denied",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Update, strings.Replace(manifest("", good), "labels: {}", "annotations: {validations: '{}'}", 1), manifest("", good))
			},
			wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantFields: []string{"metadata.annotations[validations]"},
		},
		{
			name: "a status update is none of ours",
			request: func(t *testing.T) admission.Request {
				request := review(t, admissionv1.Update, manifest("", broken), manifest("", good))
				request.SubResource = "status"
				return request
			},
			wantAllowed: true,
		},
		{
			name: "what is no template is a bad request",
			request: func(t *testing.T) admission.Request {
				return review(t, admissionv1.Create, "spec: {parameters: 7}", "")
			},
			wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response := templates.New(templates.Options{}).Handle(t.Context(), tc.request(t))
			if response.Allowed != tc.wantAllowed {
				t.Fatalf("allowed %v, want %v: %v", response.Allowed, tc.wantAllowed, response.Result)
			}
			if diff := cmp.Diff(tc.wantWarnings, response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if tc.wantAllowed {
				return
			}
			if response.Result.Code != tc.wantCode || response.Result.Reason != tc.wantReason {
				t.Errorf("got %d %s, want %d %s", response.Result.Code, response.Result.Reason, tc.wantCode, tc.wantReason)
			}
			var fields []string
			if response.Result.Details != nil {
				for _, cause := range response.Result.Details.Causes {
					fields = append(fields, cause.Field)
				}
			}
			if diff := cmp.Diff(tc.wantFields, fields); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}
