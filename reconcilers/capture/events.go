package capture

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/internal/excerpt"
)

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning

	// maximumNote is the maximum length of an event's note in bytes.
	maximumNote = 1 << 10
)

// recordEvent records an event about the request, and the same event about the VM.
func (r *Reconciler) recordEvent(s *state, vm *metav1.PartialObjectMetadata, kind, reason, doing, note string, arguments ...any) {
	if r.recorder == nil {
		return
	}
	text := excerptOf(note, arguments...)
	request := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.request.Namespace, Name: s.request.Name, UID: s.request.UID}}
	request.SetGroupVersionKind(requests.GroupVersion().WithKind(requests.kind))
	r.recorder.Eventf(request, nil, kind, reason, doing, "%s", text)
	if vm != nil {
		about := vm.DeepCopy()
		about.SetGroupVersionKind(virtualMachines.GroupVersion().WithKind(virtualMachines.kind))
		r.recorder.Eventf(about, nil, kind, reason, doing, "%s", text)
	}
}

func excerptOf(note string, arguments ...any) string {
	return excerpt.Of(fmt.Sprintf(note, arguments...), maximumNote)
}
