package writers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/powers"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Handler serves the admission requests of the webhook.
type Handler struct {
	// own is the prefix of the names of Stencil's own accounts. What they write for users is not recorded as theirs: they may do more than these users.
	own string
}

// New returns a Handler. namespace is the one of Stencil's accounts.
func New(namespace string) *Handler {
	return &Handler{own: "system:serviceaccount:" + namespace + ":"}
}

// Handle implements admission.Handler. It is called for objects that are created, and for templates whose specification or annotation is changed.
func (h *Handler) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" || request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	object, err := decoded(request.Object.Raw)
	if err != nil {
		return deny.With(apierrors.NewBadRequest(err.Error()).Status())
	}
	writer := ""
	switch before, err := decoded(request.OldObject.Raw); {
	case request.Operation == admissionv1.Update && err != nil:
		return deny.With(apierrors.NewBadRequest(err.Error()).Status())
	case request.Operation == admissionv1.Update && reflect.DeepEqual(before["spec"], object["spec"]):
		// Who replaces an object without its annotation has not written the specification.
		writer = machine.StringAt(annotationsOf(before), contract.AnnotationWrittenBy)
	case strings.HasPrefix(request.UserInfo.Username, h.own):
	case request.Resource.Resource != "virtualmachinetemplates" || elsewhere(object["spec"], request.Namespace):
		// The API server increments the generation of a changed object afterwards.
		stored, _ := machine.MapAt(before, "metadata")["generation"].(float64)
		writer = powers.WrittenBy(request.UserInfo, int64(stored)+1)
	}
	annotations := annotationsOf(object)
	if machine.StringAt(annotations, contract.AnnotationWrittenBy) == writer {
		return admission.Allowed("")
	}
	// The object is not encoded again: large integers would change.
	change := jsonpatch.NewOperation("add", annotationPath, writer)
	switch {
	case annotations == nil:
		change = jsonpatch.NewOperation("add", "/metadata/annotations", map[string]any{contract.AnnotationWrittenBy: writer})
	case writer == "":
		change = jsonpatch.NewOperation("remove", annotationPath, nil)
	}
	return admission.Patched("", change)
}

var annotationPath = "/metadata/annotations/" + strings.ReplaceAll(contract.AnnotationWrittenBy, "/", "~1")

func annotationsOf(object map[string]any) map[string]any {
	return machine.MapAt(object, "metadata", "annotations")
}

func decoded(raw []byte) (object map[string]any, err error) {
	if err = json.Unmarshal(raw, &object); err == nil && object["metadata"] == nil {
		err = errors.New("it has no metadata")
	}
	if err != nil {
		err = fmt.Errorf("decoding the object: %w", err)
	}
	return object, err
}

// elsewhere reports whether a specification refers to another namespace, or to one that depends on parameters: in a field of that name, or in the name of a
// network, NAMESPACE/NAME.
func elsewhere(value any, namespace string) bool {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			text, _ := inner.(string)
			switch key {
			case "namespace":
			case "networkName":
				prefix, _, found := strings.Cut(text, "/")
				if text = prefix; !found {
					text = ""
				}
			default:
				text = ""
			}
			if text != "" && text != namespace || elsewhere(inner, namespace) {
				return true
			}
		}
	case []any:
		for _, inner := range value {
			if elsewhere(inner, namespace) {
				return true
			}
		}
	}
	return false
}
