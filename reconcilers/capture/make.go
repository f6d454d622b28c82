package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	capturing "github.com/vmstencil/stencil/reconcilers/capture/conversion"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// metadata returns the metadata of objects that are created for a request.
func (s *state) metadata(name string) map[string]any {
	return map[string]any{"name": name, "labels": map[string]any{v1beta1.LabelRequestUID: string(s.uid())}}
}

func (s *state) reference() map[string]any {
	return ownerReference(requests, s.request.Name, s.uid())
}

// createSnapshot creates a VirtualMachineSnapshot, which KubeVirt takes.
func (r *Reconciler) createSnapshot(ctx context.Context, s *state) error {
	if err := r.authorized(ctx, s.request); err != nil {
		return err
	}
	source := s.request.Spec.VirtualMachineRef
	metadata := s.metadata(snapshotName(s.uid()))
	if source.Namespace == s.request.Namespace {
		// Only in the same namespace: the garbage collector deletes objects with an owner in another namespace.
		metadata["ownerReferences"] = []any{s.reference()}
	}
	err := r.cluster.create(ctx, snapshots, source.Namespace, map[string]any{
		"metadata": metadata,
		"spec": map[string]any{
			"source": map[string]any{"apiGroup": virtualMachines.Group, "kind": virtualMachines.kind, "name": source.Name},
			// KubeVirt gives up the snapshot at the deadline of the request.
			"failureDeadline": max(s.deadline().Sub(s.now).Round(time.Second), time.Second).String(),
		},
	})
	if err != nil {
		return err
	}
	r.recordEvent(s, s.vm, normal, "CaptureStarted", "Snapshot", "taking a snapshot of VirtualMachine %s/%s, to make VirtualMachineTemplate %s/%s of it",
		source.Namespace, source.Name, s.request.Namespace, templateName(s.request))
	return nil
}

// recordSnapshot stores the reference to the snapshot in the status.
func (r *Reconciler) recordSnapshot(ctx context.Context, s *state, next action) error {
	c := conditionsOf(s)
	c.progressing(next.reason, next.message)
	return r.writeStatus(ctx, s, c, map[string]any{"snapshotRef": v1beta1.SnapshotReference{
		Namespace: s.snapshot.Namespace, Name: s.snapshot.Name, UID: s.snapshot.UID,
	}})
}

// createDataVolumes creates the DataVolumes with which CDI copies volumes, except for those that exist.
func (r *Reconciler) createDataVolumes(ctx context.Context, s *state) error {
	if err := r.authorized(ctx, s.request); err != nil {
		return err
	}
	var failures []error
	for _, each := range s.disks {
		if each.copy != nil {
			continue
		}
		size, err := r.restoreSize(ctx, s.snapshot.Namespace, each.backup)
		if err != nil {
			return err
		}
		metadata := s.metadata(each.name)
		metadata["ownerReferences"] = []any{s.reference()}
		// Bind at once: no VM uses the copy itself, so a first consumer never appears.
		metadata["annotations"] = map[string]any{"cdi.kubevirt.io/storage.bind.immediate.requested": ""}
		err = r.cluster.create(ctx, dataVolumes, s.request.Namespace, map[string]any{
			"metadata": metadata,
			"spec": map[string]any{
				"source":  map[string]any{"snapshot": map[string]any{"namespace": s.snapshot.Namespace, "name": *each.backup.VolumeSnapshotName}},
				"storage": storage(each.backup, size),
			},
		})
		if !apierrors.IsAlreadyExists(err) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// storage returns spec.storage of a copy.
func storage(b backup, size string) map[string]any {
	claim := b.PersistentVolumeClaim.Spec
	made := map[string]any{}
	if size != "" {
		made["resources"] = map[string]any{"requests": map[string]any{"storage": size}}
	}
	if claim.StorageClassName != "" {
		made["storageClassName"] = claim.StorageClassName
	}
	if claim.VolumeMode != "" {
		made["volumeMode"] = claim.VolumeMode
	}
	if len(claim.AccessModes) > 0 {
		made["accessModes"] = claim.AccessModes
	}
	return made
}

// createTemplate converts the VM in the snapshot, writes the conditions about the result, and creates the template.
func (r *Reconciler) createTemplate(ctx context.Context, s *state, next action) error {
	if err := r.authorized(ctx, s.request); err != nil {
		return err
	}
	requested := r.requested(s)
	vm, err := r.expanded(ctx, s, requested.Instancetype)
	if err != nil {
		return err
	}
	options := capturing.Options{Spec: requested, Namespace: s.request.Namespace}
	for _, each := range s.disks {
		size, err := r.restoreSize(ctx, s.snapshot.Namespace, each.backup)
		if err != nil {
			return err
		}
		claim := each.backup.PersistentVolumeClaim.Spec
		options.Disks = append(options.Disks, capturing.Disk{Volume: each.backup.VolumeName, DataVolume: each.name, Storage: capturing.Storage{
			Size: size, Class: claim.StorageClassName, VolumeMode: claim.VolumeMode, AccessModes: claim.AccessModes,
		}})
	}
	result, err := capturing.Convert(vm, options)
	if err != nil {
		return &permanentError{v1beta1.ReasonCaptureRefused, err}
	}
	c := conditionsOf(s)
	c.captured(result)
	if !s.retrying(next.step) {
		c.progressing(next.reason, next.message)
	}
	if err := r.writeStatus(ctx, s, c, nil); err != nil {
		return err
	}
	metadata := s.metadata(templateName(s.request))
	labels, _ := metadata["labels"].(map[string]any)
	// The policy template-request requires of the user that they may create DataVolumes here, which copy every claim of the namespace.
	labels[contract.LabelDiskAccess] = contract.DiskAccessLend
	for key, value := range s.request.Spec.TemplateLabels {
		labels[key] = value
	}
	metadata["ownerReferences"] = []any{s.reference()}
	return r.cluster.create(ctx, templates, s.request.Namespace, map[string]any{"metadata": metadata, "spec": result.Spec})
}

// requested returns the spec of a request, with the default of the installation for its instance type.
func (r *Reconciler) requested(s *state) v1beta1.VirtualMachineTemplateRequestSpec {
	spec := *s.request.Spec.DeepCopy()
	if spec.Instancetype != "" || r.instancetype == v1beta1.CaptureInstancetypeExpand {
		return spec
	}
	vm, namespace := s.content.Spec.Source.VirtualMachine, s.request.Spec.VirtualMachineRef.Namespace
	instancetype, err1 := sizing.Instancetype(vm, namespace)
	preference, err2 := sizing.Preference(vm, namespace)
	if err1 != nil || err2 != nil {
		return spec
	}
	for _, each := range []*sizing.Reference{instancetype, preference} {
		if each != nil && (each.Namespaced() || each.Name == "") {
			return spec
		}
	}
	spec.Instancetype = v1beta1.CaptureInstancetypeKeep
	spec.Parameterize = append(spec.Parameterize, v1beta1.CaptureInstancetypeName)
	return spec
}

// expanded returns the VM in the snapshot, with instance type and preference expanded, unless their names are retained.
func (r *Reconciler) expanded(ctx context.Context, s *state, instancetype v1beta1.CaptureInstancetype) (map[string]any, error) {
	held := s.content.Spec.Source.VirtualMachine
	metadata, _ := held["metadata"].(map[string]any)
	spec, _ := held["spec"].(map[string]any)
	source := s.request.Spec.VirtualMachineRef
	vm := map[string]any{
		"apiVersion": virtualMachines.GroupVersion().String(), "kind": virtualMachines.kind,
		"metadata": metadata, "spec": spec,
	}
	if metadata == nil {
		vm["metadata"] = map[string]any{"name": source.Name, "namespace": source.Namespace}
	} else {
		// The metadata in a snapshot may lack name and namespace.
		metadata["name"], metadata["namespace"] = source.Name, source.Namespace
	}
	if instancetype == v1beta1.CaptureInstancetypeKeep || spec["instancetype"] == nil && spec["preference"] == nil {
		return vm, nil
	}
	// The status holds the revisions of instance type and preference that KubeVirt uses.
	if held["status"] != nil {
		vm["status"] = held["status"]
	}
	expanded, err := r.cluster.expander.Expand(ctx, source.Namespace, vm)
	switch {
	case unknownKind(err):
		return nil, &unknownKindError{expandSpec}
	case apierrors.IsNotFound(err), permanent(err):
		return nil, &permanentError{v1beta1.ReasonExpansionFailed, fmt.Errorf("expanding the instance type and the preference of VirtualMachine %s/%s: %w", source.Namespace, source.Name, err)}
	case err != nil:
		return nil, fmt.Errorf("expanding the instance type and the preference of VirtualMachine %s/%s: %w", source.Namespace, source.Name, err)
	}
	return expanded, nil
}

// handOver makes the template the owner of the DataVolumes, instead of the request.
func (r *Reconciler) handOver(ctx context.Context, s *state) error {
	owner := ownerReference(templates, s.template.Name, s.template.UID)
	var failures []error
	for i := range s.owned {
		each := &s.owned[i]
		failures = append(failures, r.cluster.patch(ctx, dataVolumes, each, owners(append(without(each, s.uid()), owner))))
	}
	return errors.Join(failures...)
}

func (r *Reconciler) deleteDataVolumes(ctx context.Context, s *state) error {
	var failures []error
	for i := range s.owned {
		failures = append(failures, r.cluster.delete(ctx, dataVolumes, &s.owned[i]))
	}
	return errors.Join(failures...)
}

// removeFinalizer removes the finalizer for the cleanup of the snapshot from the request.
func (r *Reconciler) removeFinalizer(ctx context.Context, s *state) error {
	remaining := slices.DeleteFunc(slices.Clone(s.request.Finalizers), func(each string) bool { return each == v1beta1.FinalizerSnapshotCleanup })
	if remaining == nil {
		remaining = []string{}
	}
	return r.cluster.patch(ctx, requests, s.request, finalizers(remaining))
}

// end ends the request without a template.
func (r *Reconciler) end(ctx context.Context, s *state, reason, message string) error {
	c := conditionsOf(s)
	c.failed(reason, message)
	if err := r.writeStatus(ctx, s, c, nil); err != nil {
		return err
	}
	r.metrics.ended(resultFailed, reason, r.clock.Now().Sub(s.request.CreationTimestamp.Time))
	r.recordEvent(s, s.sourceVM(), warning, "CaptureFailed", "Capture", "no template was created from VirtualMachine %s/%s: %s: %s",
		s.request.Spec.VirtualMachineRef.Namespace, s.request.Spec.VirtualMachineRef.Name, reason, message)
	return nil
}

// finish ends the request with its template.
func (r *Reconciler) finish(ctx context.Context, s *state) error {
	c := conditionsOf(s)
	usable := c.finished(s.template.Name)
	if err := r.writeStatus(ctx, s, c, map[string]any{"templateRef": map[string]any{"name": s.template.Name}, "snapshotRef": nil}); err != nil {
		return err
	}
	source, took := s.request.Spec.VirtualMachineRef, r.clock.Now().Sub(s.request.CreationTimestamp.Time)
	if !usable {
		r.metrics.ended(resultIncomplete, v1beta1.ReasonUnreachable, took)
		r.recordEvent(s, s.sourceVM(), warning, "CaptureIncomplete", "Capture", "VirtualMachineTemplate %s/%s was created from VirtualMachine %s/%s, and refers to objects that its VirtualMachines cannot use",
			s.request.Namespace, s.template.Name, source.Namespace, source.Name)
		return nil
	}
	r.metrics.ended(resultReady, v1beta1.ReasonReconciled, took)
	r.recordEvent(s, s.sourceVM(), normal, "Captured", "Capture", "VirtualMachineTemplate %s/%s was created from VirtualMachine %s/%s",
		s.request.Namespace, s.template.Name, source.Namespace, source.Name)
	return nil
}

// sourceVM returns the VirtualMachine for events, by its name and, if the snapshot recorded it, its UID.
func (s *state) sourceVM() *metav1.PartialObjectMetadata {
	if s.vm != nil {
		return s.vm
	}
	named := &metav1.PartialObjectMetadata{}
	named.Namespace, named.Name = s.request.Spec.VirtualMachineRef.Namespace, s.request.Spec.VirtualMachineRef.Name
	if s.content != nil {
		var held metav1.PartialObjectMetadata
		if raw, err := json.Marshal(s.content.Spec.Source.VirtualMachine); err == nil && json.Unmarshal(raw, &held) == nil {
			named.UID = held.UID
		}
	}
	return named
}
