package capture

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// defaultTimeout is how long a request may take that says nothing about it.
const defaultTimeout = time.Hour

// state is what there is of a capture at one moment.
type state struct {
	now     time.Time
	request *v1beta1.VirtualMachineTemplateRequest

	// template has the name that the request asks for, whoever has made it; nil when there is none.
	template *metav1.PartialObjectMetadata
	// snapshot has the name that derives from the request; nil when there is none.
	snapshot *snapshot
	// content belongs to the snapshot, once that is taken; nil when there is none.
	content *content
	// lost are the VolumeSnapshots that the snapshot had, and that are no more.
	lost []string
	// disks are the volumes in the content, with their copies.
	disks []disk
	// owned are the DataVolumes that the request owns.
	owned []metav1.PartialObjectMetadata
	// machine is the VirtualMachine; nil when there is none. It is read until the snapshot is taken.
	machine *metav1.PartialObjectMetadata
	// unknown is a kind that the API server does not know; empty when it knew all that were asked for.
	unknown string
}

// disk is one volume that is copied.
type disk struct {
	backup backup
	// name is that of the copy.
	name string
	// copy is nil when there is none.
	copy *dataVolume
}

func (s *state) uid() types.UID { return s.request.UID }

// deadline is when the request has to be finished.
func (s *state) deadline() time.Time {
	timeout := defaultTimeout
	if s.request.Spec.Timeout != nil {
		timeout = s.request.Spec.Timeout.Duration
	}
	return s.request.CreationTimestamp.Add(timeout)
}

// ended says whether the outcome is known.
func (s *state) ended() bool {
	return meta.IsStatusConditionFalse(s.request.Status.Conditions, v1beta1.ConditionProgressing)
}

// retrying says whether the step failed when it was last tried. Until it succeeds, that stays what the request tells.
func (s *state) retrying(next step) bool {
	progressing := meta.FindStatusCondition(s.request.Status.Conditions, v1beta1.ConditionProgressing)
	return progressing != nil && progressing.Status == metav1.ConditionTrue && progressing.Reason == v1beta1.ReasonRetrying &&
		strings.HasPrefix(progressing.Message, couldNot(next))
}

// couldNot is how a request begins to tell of a step that failed.
func couldNot(next step) string { return fmt.Sprintf("could not %s, and tries again: ", next) }

func (s *state) ready() bool {
	return meta.IsStatusConditionTrue(s.request.Status.Conditions, v1beta1.ConditionReady)
}

// underConstruction says whether the template is the request's still.
func (s *state) underConstruction() bool { return s.template != nil && ownedBy(s.template, s.uid()) }

// linked says whether the request is owned by the template that there is.
func (s *state) linked() bool { return s.template != nil && ownedBy(s.request, s.template.UID) }

// link is the request's reference to a template of that name, whether or not there is one.
func (s *state) link() *metav1.OwnerReference {
	for i, reference := range s.request.OwnerReferences {
		if reference.Kind == templates.kind && reference.Name == templateName(s.request) {
			return &s.request.OwnerReferences[i]
		}
	}
	return nil
}

// ownsSnapshot says whether the snapshot was taken for the request.
func (s *state) ownsSnapshot() bool {
	if s.snapshot == nil {
		return false
	}
	if known := s.request.Status.SnapshotRef; known != nil {
		return known.UID == s.snapshot.UID
	}
	if s.request.Spec.VirtualMachineRef.Namespace == s.request.Namespace {
		return ownedBy(s.snapshot, s.uid())
	}
	return s.snapshot.Labels[v1beta1.LabelRequestUID] == string(s.uid()) &&
		s.snapshot.Spec.Source.Kind == machines.kind && s.snapshot.Spec.Source.Name == s.request.Spec.VirtualMachineRef.Name &&
		!s.snapshot.CreationTimestamp.Before(&s.request.CreationTimestamp)
}
