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

// defaultTimeout is the time limit of a request that specifies none.
const defaultTimeout = time.Hour

// state holds the objects of a capture at one moment.
type state struct {
	now     time.Time
	request *v1beta1.VirtualMachineTemplateRequest

	// template has the requested name, whether or not this request created it; nil if there is none.
	template *metav1.PartialObjectMetadata
	// snapshot has the name that derives from the request; nil if there is none.
	snapshot *snapshot
	// content belongs to the snapshot, once that is taken; nil if there is none.
	content *content
	// lost are the VolumeSnapshots of the snapshot that no longer exist.
	lost []string
	// disks are the volumes in the content, with their copies.
	disks []disk
	// owned are the DataVolumes that the request owns.
	owned []metav1.PartialObjectMetadata
	// vm is read until the snapshot is taken; nil if there is none.
	vm *metav1.PartialObjectMetadata
	// unknown is a kind that the API server does not serve; empty if it serves all that were read.
	unknown string
}

// disk is one volume to copy.
type disk struct {
	backup backup
	// name is the name of the copy.
	name string
	// copy is nil if there is none.
	copy *dataVolume
}

func (s *state) uid() types.UID { return s.request.UID }

// deadline returns the time by which the request has to be finished.
func (s *state) deadline() time.Time {
	timeout := defaultTimeout
	if s.request.Spec.Timeout != nil {
		timeout = s.request.Spec.Timeout.Duration
	}
	return s.request.CreationTimestamp.Add(timeout)
}

// ended reports whether the request has finished, with or without a template.
func (s *state) ended() bool {
	return meta.IsStatusConditionFalse(s.request.Status.Conditions, v1beta1.ConditionProgressing)
}

// retrying reports whether the last attempt at the step failed. Until it succeeds, the conditions continue to report that.
func (s *state) retrying(next step) bool {
	progressing := meta.FindStatusCondition(s.request.Status.Conditions, v1beta1.ConditionProgressing)
	return progressing != nil && progressing.Status == metav1.ConditionTrue && progressing.Reason == v1beta1.ReasonRetrying &&
		strings.HasPrefix(progressing.Message, couldNot(next))
}

// couldNot returns the beginning of the message about a step that failed.
func couldNot(next step) string { return fmt.Sprintf("could not %s, and tries again: ", next) }

func (s *state) ready() bool {
	return meta.IsStatusConditionTrue(s.request.Status.Conditions, v1beta1.ConditionReady)
}

// underConstruction reports whether the request still owns the template.
func (s *state) underConstruction() bool { return s.template != nil && ownedBy(s.template, s.uid()) }

// linked reports whether the existing template owns the request.
func (s *state) linked() bool { return s.template != nil && ownedBy(s.request, s.template.UID) }

// link returns the request's owner reference to a template with the requested name, whether or not that exists.
func (s *state) link() *metav1.OwnerReference {
	for i, reference := range s.request.OwnerReferences {
		if reference.Kind == templates.kind && reference.Name == templateName(s.request) {
			return &s.request.OwnerReferences[i]
		}
	}
	return nil
}

// ownsSnapshot reports whether the snapshot was taken for the request.
func (s *state) ownsSnapshot() bool {
	if s.snapshot == nil {
		return false
	}
	if recorded := s.request.Status.SnapshotRef; recorded != nil {
		return recorded.UID == s.snapshot.UID
	}
	if s.request.Spec.VirtualMachineRef.Namespace == s.request.Namespace {
		return ownedBy(s.snapshot, s.uid())
	}
	return s.snapshot.Labels[v1beta1.LabelRequestUID] == string(s.uid()) &&
		s.snapshot.Spec.Source.Kind == virtualMachines.kind && s.snapshot.Spec.Source.Name == s.request.Spec.VirtualMachineRef.Name &&
		!s.snapshot.CreationTimestamp.Before(&s.request.CreationTimestamp)
}
