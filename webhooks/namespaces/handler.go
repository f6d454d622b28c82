package namespaces

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Approvals returns all approvals. It returns the same slice until an approval changes.
type Approvals interface {
	Approvals() []*approval.Approval
}

// Handler serves the admission requests for Namespaces. It is safe for concurrent use.
type Handler struct {
	approvals Approvals

	mutex   sync.Mutex
	indexed []*approval.Approval
	index   map[string]string
}

// New returns a Handler.
func New(approvals Approvals) *Handler { return &Handler{approvals: approvals} }

// Handle implements admission.Handler.
func (h *Handler) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.Resource.Group != "" || request.Resource.Resource != "namespaces" || request.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	before, err := labelsOf(request.OldObject.Raw)
	if err != nil {
		return deny.Malformed(err)
	}
	after, err := labelsOf(request.Object.Raw)
	if err != nil {
		return deny.Malformed(err)
	}
	if _, labelled := after[v1alpha1.LabelGoverned]; !labelled || !approval.ChangesSelection(h.currentIndex(), before, after) {
		return admission.Allowed("")
	}
	return admission.Patched("", jsonpatch.NewOperation("remove", "/metadata/labels/stencil.kubevirt.io~1governed", nil))
}

func labelsOf(raw []byte) (map[string]string, error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decoding the Namespace: %w", err)
	}
	return object.Labels, nil
}

// currentIndex returns the index of the approvals. It recomputes the index only after the approvals have changed.
func (h *Handler) currentIndex() map[string]string {
	current := h.approvals.Approvals()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.index == nil || !same(h.indexed, current) {
		h.indexed, h.index = current, approval.NamespaceIndex(current)
	}
	return h.index
}

func same(a, b []*approval.Approval) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
