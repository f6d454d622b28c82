// Package written reads the object that an admission request writes, for webhooks that
// judge what objects of a kind say.
package written

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/webhooks/internal/refuse"
)

// Object is what a request creates, or changes in what matters; what is its kind in the
// words of the refusal. Without it there is an answer: that nothing has to be judged, or
// that the object cannot be read.
//
// An update that leaves what matters the same is let through, so that labels and
// finalizers stay editable even when a newer Stencil would not take the object any more.
func Object[T any](request admission.Request, what string, same func(before, after *T) bool) (*T, *admission.Response) {
	allowed := admission.Allowed("")
	if request.SubResource != "" || request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return nil, &allowed
	}
	object := new(T)
	if err := json.Unmarshal(request.Object.Raw, object); err != nil {
		malformed := refuse.With(apierrors.NewBadRequest(fmt.Sprintf("decoding the %s: %v", what, err)).Status())
		return nil, &malformed
	}
	if request.Operation == admissionv1.Update {
		// A stored object that cannot be read is another one.
		before := new(T)
		if err := json.Unmarshal(request.OldObject.Raw, before); err == nil && same(before, object) {
			return nil, &allowed
		}
	}
	return object, nil
}
