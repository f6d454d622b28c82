package changed_test

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/webhooks/internal/changed"
)

func TestObject(t *testing.T) {
	const one, other = `{"metadata":{"name":"a"},"data":{"a":"1"}}`, `{"metadata":{"name":"a"},"data":{"a":"2"}}`
	for name, tc := range map[string]struct {
		operation   admissionv1.Operation
		subresource string
		before      string
		after       string
		evaluated   bool
		denial      string
	}{
		"a new object is evaluated":          {operation: admissionv1.Create, after: one, evaluated: true},
		"one that changes is evaluated":      {operation: admissionv1.Update, before: other, after: one, evaluated: true},
		"one that stays the same is not":     {operation: admissionv1.Update, before: `{"metadata":{"labels":{"x":"y"}},"data":{"a":"1"}}`, after: one},
		"what was there cannot be read":      {operation: admissionv1.Update, before: `{"data":5}`, after: one, evaluated: true},
		"what is sent cannot be read":        {operation: admissionv1.Create, after: `{"data":5}`, denial: "decoding the thing: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string"},
		"a deletion has nothing to be read":  {operation: admissionv1.Delete, before: one},
		"a status is somebody else's matter": {operation: admissionv1.Update, subresource: "status", before: other, after: one},
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: tc.operation, SubResource: tc.subresource,
				Object: runtime.RawExtension{Raw: []byte(tc.after)}, OldObject: runtime.RawExtension{Raw: []byte(tc.before)},
			}}
			object, answer := changed.Object(request, "thing", func(before, after *corev1.ConfigMap) bool { return before.Data["a"] == after.Data["a"] })
			switch {
			case tc.evaluated:
				if answer != nil || object.Data["a"] != "1" {
					t.Errorf("got %v and the answer %v", object, answer)
				}
			case object != nil || answer == nil || answer.Allowed != (tc.denial == ""):
				t.Errorf("got %v and the answer %v", object, answer)
			case tc.denial != "" && (answer.Result.Message != tc.denial || answer.Result.Code != 400):
				t.Errorf("it is denied with %v", answer.Result)
			}
		})
	}
}
