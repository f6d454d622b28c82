// Package changed decodes the object of an admission request, for webhooks that evaluate the objects of a kind.
package changed

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Object returns the object of a request that creates it, or that changes a relevant part of it. what is the name of
// the kind in error messages; same reports whether the relevant parts of two objects are equal. Otherwise Object
// returns a response, which allows the request if there is nothing to evaluate, and rejects it if the object cannot
// be decoded.
//
// An update that leaves the relevant part unchanged is allowed, so that labels and finalizers remain editable even if
// a newer version of Stencil rejects the object.
func Object[T any](request admission.Request, what string, same func(before, after *T) bool) (*T, *admission.Response) {
	allowed := admission.Allowed("")
	if request.SubResource != "" || request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return nil, &allowed
	}
	object := new(T)
	if err := json.Unmarshal(request.Object.Raw, object); err != nil {
		malformed := deny.With(apierrors.NewBadRequest(fmt.Sprintf("decoding the %s: %v", what, err)).Status())
		return nil, &malformed
	}
	if request.Operation == admissionv1.Update {
		// A stored object that cannot be decoded counts as changed.
		before := new(T)
		if err := json.Unmarshal(request.OldObject.Raw, before); err == nil && same(before, object) {
			return nil, &allowed
		}
	}
	return object, nil
}
