package readiness

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/excerpt"
)

// Reasons of events about the source of several templates.
const (
	reasonTemplatesNotReady = "TemplatesNotReady"
	reasonTemplatesReady    = "TemplatesReady"
)

const (
	// maximumNote is the maximum length of an event's note that the API server accepts, in bytes.
	maximumNote = 1024
	// maximumTemplates is the maximum number of templates that an event names.
	maximumTemplates = 5
)

// report is an event before it is written.
type report struct {
	// about is the template, or the source of several ones; related is then one of the templates, otherwise nil.
	about, related     *metav1.PartialObjectMetadata
	kind, reason, note string
}

// reportOf returns the event about flips with a common cause and direction; there is at least one, and each is of another template of one namespace. The event of
// a single template is about the template, that of several about their source if it is in their namespace, and otherwise about the first of them: who writes
// templates in one namespace writes no events in another.
func reportOf(flips []flip, source *metav1.PartialObjectMetadata) report {
	first := flips[0]
	made := report{about: templateOf(first), kind: corev1.EventTypeWarning, reason: first.ready.Reason, note: first.ready.Message}
	if first.ready.Status == metav1.ConditionTrue {
		made.kind = corev1.EventTypeNormal
	}
	if len(flips) > 1 {
		if source.Namespace == first.template.Namespace {
			made.about, made.related = source, made.about
		}
		names := make([]string, len(flips))
		for i, one := range flips {
			names[i] = one.template.String()
		}
		slices.Sort(names)
		list := excerpt.List(names, maximumTemplates, "")
		if made.kind == corev1.EventTypeNormal {
			made.reason, made.note = reasonTemplatesReady, fmt.Sprintf("%d templates are ready: %s", len(flips), list)
		} else {
			made.reason, made.note = reasonTemplatesNotReady, strings.TrimSuffix(fmt.Sprintf("%d templates are not ready: %s: %s", len(flips), list, first.detail), ": ")
		}
	}
	made.note = excerpt.Of(made.note, maximumNote)
	return made
}

// templateOf identifies the template of a flip. Its resource version keeps the event recorder from merging the event with an earlier one that has
// another note.
func templateOf(of flip) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "VirtualMachineTemplate"},
		ObjectMeta: metav1.ObjectMeta{Namespace: of.template.Namespace, Name: of.template.Name, UID: of.uid, ResourceVersion: of.version},
	}
}
