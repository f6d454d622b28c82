package serving

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestReadReview(t *testing.T) {
	const kind = `"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"`
	for name, tc := range map[string]struct {
		body      string
		want      *admissionv1.AdmissionRequest
		wantError string
	}{
		"a request with an object": {
			body: `{` + kind + `,"request":{"uid":"42","operation":"CREATE","namespace":"team-a","userInfo":{"username":"ada","extra":{"a":["b"]}},"object":{"spec":{"a":1.50}},"oldObject":null,"dryRun":true}}`,
			want: &admissionv1.AdmissionRequest{
				UID: "42", Operation: admissionv1.Create, Namespace: "team-a", DryRun: ptr.To(true), Object: runtime.RawExtension{Raw: []byte(`{"spec":{"a":1.50}}`)},
			},
		},
		"keys of other letters are not those of a review": {body: `{` + kind + `,"Request":{"uid":"42"}}`, wantError: "the AdmissionReview holds no request"},
		"another version":         {body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{}}`, wantError: `the body is a "AdmissionReview" of "admission.k8s.io/v1beta1", not an AdmissionReview of admission.k8s.io/v1`},
		"another kind":            {body: `{"kind":"Pod","apiVersion":"v1"}`, wantError: `the body is a "Pod" of "v1", not an AdmissionReview of admission.k8s.io/v1`},
		"nothing":                 {wantError: "decoding the AdmissionReview: unexpected end of JSON input"},
		"two reviews":             {body: `{` + kind + `,"request":{}}{}`, wantError: "decoding the AdmissionReview: invalid character '{' after top-level value"},
		"a field of a wrong type": {body: `{` + kind + `,"request":{"uid":7}}`, wantError: "decoding the AdmissionReview: json: cannot unmarshal number into Go struct field AdmissionRequest.request.uid of type types.UID"},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(tc.body)
			got, err := readReview(body)
			if tc.wantError != "" {
				if err == nil || err.Error() != tc.wantError {
					t.Errorf("error %q, want %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// The buffer is reused for another request after the response.
			clear(body)
			tc.want.UserInfo = got.UserInfo
			if got.UserInfo.Username != "ada" || got.UserInfo.Extra["a"][0] != "b" {
				t.Errorf("user %v", got.UserInfo)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// The output must equal that of the standard library's encoder.
func TestAppendReview(t *testing.T) {
	jsonPatch := admissionv1.PatchTypeJSONPatch
	for name, response := range map[string]*admissionv1.AdmissionResponse{
		"consent":               {UID: "42", Allowed: true},
		"a patch":               {UID: "42", Allowed: true, PatchType: &jsonPatch, Patch: []byte(`[{"op":"add","path":"/spec","value":"` + strings.Repeat("ü", 5000) + `"}]`)},
		"warnings":              {UID: "42", Allowed: true, Warnings: []string{"one", "two"}},
		"annotations":           {UID: "42", Allowed: true, AuditAnnotations: map[string]string{"a": "b"}},
		"a denial":              {UID: "42", Result: &metav1.Status{Code: 403, Message: `say "no"`, Reason: metav1.StatusReasonForbidden}},
		"a UID of another kind": {UID: types.UID(`"}` + "\n"), Allowed: true},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := appendReview(nil, response)
			if err != nil {
				t.Fatal(err)
			}
			var got admissionv1.AdmissionReview
			if err := json.Unmarshal(content, &got); err != nil {
				t.Fatalf("%v: %s", err, content)
			}
			if diff := cmp.Diff(admissionv1.AdmissionReview{TypeMeta: reviewKind, Response: response}, got); diff != "" {
				t.Errorf("review (-want +got):\n%s", diff)
			}
		})
	}
}
