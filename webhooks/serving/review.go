package serving

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kubejson "sigs.k8s.io/json"
)

// reviewKind is the only kind that is read and returned: admissionReviewVersions of the chart's webhooks lists no
// other version.
var reviewKind = metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}

// readReview decodes the request of an AdmissionReview in JSON. The result shares nothing with the body.
func readReview(body []byte) (*admissionv1.AdmissionRequest, error) {
	var review admissionv1.AdmissionReview
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(body, &review); err != nil {
		return nil, fmt.Errorf("decoding the AdmissionReview: %w", err)
	}
	if review.TypeMeta != reviewKind {
		return nil, fmt.Errorf("the body is a %q of %q, not an %s of %s", review.Kind, review.APIVersion, reviewKind.Kind, reviewKind.APIVersion)
	}
	if review.Request == nil {
		return nil, errors.New("the AdmissionReview holds no request")
	}
	return review.Request, nil
}

// appendReview appends an AdmissionReview with the response, in JSON.
func appendReview(to []byte, response *admissionv1.AdmissionResponse) ([]byte, error) {
	if !response.Allowed || len(response.Warnings) > 0 || len(response.AuditAnnotations) > 0 || strings.ContainsFunc(string(response.UID), isEscaped) {
		content, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: reviewKind, Response: response})
		return append(to, content...), err
	}
	// Nearly all responses allow the request, with or without a patch. Reflection would take a noticeable part of the time of a call.
	to = append(to, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"`...)
	to = append(to, response.UID...)
	to = append(to, `","allowed":true`...)
	if response.PatchType != nil {
		to = append(to, `,"patchType":"`...)
		to = append(to, *response.PatchType...)
		to = append(to, '"')
	}
	if len(response.Patch) > 0 {
		to = append(to, `,"patch":"`...)
		to = base64.StdEncoding.AppendEncode(to, response.Patch)
		to = append(to, '"')
	}
	return append(to, "}}"...), nil
}

// isEscaped reports whether a character must be escaped in JSON. UIDs have no such characters.
func isEscaped(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

// complete returns the response of a handler with the UID of the request and with its patch encoded.
func complete(response admission.Response, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if err := response.Complete(admission.Request{AdmissionRequest: *request}); err != nil {
		response = denial(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the answer could not be encoded")
		response.UID = request.UID
	}
	return &response.AdmissionResponse
}
