package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

const (
	importTimeout = 6 * time.Hour
	// longestTimeout is what a longer one counts as: others wait for the place of an import.
	longestTimeout = 24 * time.Hour
	// noPreference is the value of spec.preference for no preference.
	noPreference = "None"
	// inspection and importation are the suffixes of the names of Jobs and Secrets.
	inspection  = "-inspect"
	importation = ""
)

// Imports reconciles VirtualMachineTemplateImports.
type Imports struct{ *runner }

// importing is one import at one moment.
type importing struct {
	*session
	object *v1beta1.VirtualMachineTemplateImport
}

// Reconcile implements reconcile.Reconciler.
func (r *Imports) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1beta1.VirtualMachineTemplateImport{}
	found, err := get(ctx, r.manager, request.Namespace, request.Name, object)
	acknowledged := false
	if found && ended(object.Status.Phase) {
		acknowledged = acknowledgementChanged(object, object.Status.Conditions)
	}
	// The garbage collector deletes the objects of an import that is deleted.
	if err != nil || !found || object.DeletionTimestamp != nil || ended(object.Status.Phase) && !acknowledged {
		if err == nil {
			r.slots.leave(place{directionImport, request.NamespacedName})
		}
		return reconcile.Result{}, err
	}
	s, err := r.newSession(ctx, directionImport, "VirtualMachineTemplateImport", object, &object.Status.Phase, &object.Status.Conditions, func(o owner) []string {
		if object.Spec.Source.Upload == nil {
			return nil
		}
		return o.serverNames(&r.settings)
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	i := &importing{s, object}
	if acknowledged {
		return reconcile.Result{}, i.acknowledge(ctx, i.templateName())
	}
	return s.drive(ctx, i.step, i.clear)
}

// timeout is how long the transfer may take.
func (i *importing) timeout() time.Duration {
	if i.object.Spec.Timeout == nil {
		return importTimeout
	}
	return min(i.object.Spec.Timeout.Duration, longestTimeout)
}

// step does what is next, and returns when to look again.
func (i *importing) step(ctx context.Context) (time.Duration, error) {
	status := &i.object.Status
	if status.StartTime == nil {
		now := metav1.NewTime(i.clock.Now())
		status.StartTime = &now
		i.progressing(v1beta1.TransferPending, v1beta1.ReasonReconciling, "the import begins")
		return time.Millisecond, nil
	}
	timeout := i.timeout()
	if status.Phase != v1beta1.TransferPublishing && status.Phase != v1beta1.TransferWaiting && status.Phase != v1beta1.TransferPending && i.clock.Since(status.StartTime.Time) > timeout {
		return 0, &permanentError{transfer.ReasonTimedOut, fmt.Sprintf("the import has not finished within %s: set a longer spec.timeout in a new import, of at most %s", timeout, longestTimeout)}
	}
	switch {
	case !i.uploaded():
		return i.receive(ctx)
	case status.Plan == nil:
		return i.inspect(ctx)
	case status.Phase == v1beta1.TransferPublishing:
		return i.publish(ctx)
	}
	if wait := i.wait(); wait != "" {
		i.progressing(v1beta1.TransferWaiting, ReasonWaitingForUser, wait)
		// A change of the spec wakes the import.
		return 0, nil
	}
	return i.transfer(ctx)
}

// restartClock has the timeout begin anew after a wait for a user or for other transfers.
func (i *importing) restartClock() {
	if status := &i.object.Status; status.Phase == v1beta1.TransferWaiting || status.Phase == v1beta1.TransferPending {
		now := metav1.NewTime(i.clock.Now())
		status.StartTime = &now
	}
}

// task returns the task of a stage.
func (i *importing) task(stage transfer.Stage) *transfer.Task {
	spec := &i.object.Spec
	task := &transfer.Task{
		Stage: stage, Source: i.source(), Verification: spec.Verification, Checksum: spec.Checksum,
		Conversion: transfer.Conversion{
			Namespace: i.object.Namespace, Name: i.templateName(), DeploymentOption: spec.DeploymentOption, Networks: spec.Networks, Instancetype: spec.Instancetype,
		},
		Limits: transfer.Limits{Disks: i.settings.MaxDisks, Bytes: i.settings.MaxBytes, Ratio: maxRatio, Seconds: int64(i.timeout().Seconds()), StallSeconds: stallSeconds, BytesPerSecond: slowest},
	}
	i.settings.restrict(task)
	if spec.Preference == noPreference {
		task.Conversion.Preference = new("")
	} else if spec.Preference != "" {
		task.Conversion.Preference = &spec.Preference
	}
	return task
}

const (
	// maxRatio is how many times larger than its file the content of a compressed file may be.
	maxRatio = 1000
	// stallSeconds is how long a source may send nothing.
	stallSeconds = 60
	// slowest is how many bytes per second a source sends at least.
	slowest = 32 << 10
)

// start creates what a mover needs, and its Job.
func (i *importing) start(ctx context.Context, suffix string, task *transfer.Task, j job) error {
	j.secret = i.owner.called(suffix)
	secret, digest, err := i.owner.secret(j.secret, task, i.who)
	if err != nil {
		return err
	}
	j.digest = digest
	j.credentials, j.authorities = credentials(task.Source)
	if task.Source.PVC != nil {
		j.source = task.Source.PVC.Name
	}
	if err := replace(ctx, i.cluster, secret); err != nil {
		return err
	}
	for _, object := range []client.Object{i.networkPolicy(), i.owner.job(i.owner.called(suffix), j, &i.settings)} {
		if err := ensure(ctx, i.cluster, object); err != nil {
			return err
		}
	}
	return nil
}

// credentials returns the names of the Secret and the ConfigMap that a source names; empty if it names none.
func credentials(source *v1beta1.ImportSource) (secret, authorities string) {
	switch {
	case source.HTTP != nil:
		return nameOf(source.HTTP.SecretRef), nameOf(source.HTTP.CertificatesRef)
	case source.S3 != nil:
		return source.S3.SecretRef.Name, nameOf(source.S3.CertificatesRef)
	case source.Registry != nil:
		return nameOf(source.Registry.SecretRef), nameOf(source.Registry.CertificatesRef)
	}
	return "", ""
}

func nameOf(reference *corev1.LocalObjectReference) string {
	if reference == nil {
		return ""
	}
	return reference.Name
}

// inspect has the description of the package read, and plans the import.
func (i *importing) inspect(ctx context.Context) (time.Duration, error) {
	name := i.owner.called(inspection)
	seen, err := i.observe(ctx, i.owner, name, i.who)
	if err != nil {
		return 0, err
	}
	if seen.missing {
		if queued, err := i.queued(ctx); queued || err != nil {
			return queueInterval, err
		}
		i.restartClock()
		if err := i.authorized(ctx); err != nil {
			return 0, err
		}
		if err := i.checkName(ctx); err != nil {
			return 0, err
		}
		if err := i.start(ctx, inspection, i.task(transfer.Inspect), job{}); err != nil {
			return 0, err
		}
	}
	if err := failure(seen.state); err != nil {
		return 0, err
	}
	if !i.finished(ctx, seen, v1beta1.TransferInspecting, "reading the description of the package") {
		return pollInterval, nil
	}
	if err := i.plan(seen.state.Plan); err != nil {
		return 0, err
	}
	i.object.Status.Warnings = seen.state.Warnings
	// The plan is stored before the mover, which has it, is gone.
	if err := i.write(ctx); err != nil {
		return 0, err
	}
	return time.Millisecond, i.release(ctx, name, seen.ip)
}

// checkName fails if the template exists.
func (i *importing) checkName(ctx context.Context) error {
	template := &metav1.PartialObjectMetadata{}
	template.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("VirtualMachineTemplate"))
	found, err := get(ctx, i.cluster, i.object.Namespace, i.templateName(), template)
	if found {
		return &permanentError{ReasonNameTaken, fmt.Sprintf("VirtualMachineTemplate %s/%s exists already: delete it, or choose another spec.templateName", i.object.Namespace, i.templateName())}
	}
	return err
}

// transfer has the disks written.
func (i *importing) transfer(ctx context.Context) (time.Duration, error) {
	name := i.owner.called(importation)
	seen, err := i.observe(ctx, i.owner, name, i.who)
	if err != nil {
		return 0, err
	}
	if seen.missing {
		if queued, err := i.queued(ctx); queued || err != nil {
			return queueInterval, err
		}
		i.restartClock()
		if err := i.authorized(ctx); err != nil {
			return 0, err
		}
		if err := i.startImport(ctx); err != nil {
			return 0, err
		}
	}
	if err := failure(seen.state); err != nil {
		return 0, err
	}
	done := i.finished(ctx, seen, v1beta1.TransferTransferring, "writing the disks")
	if seen.state != nil {
		i.object.Status.Disks, i.object.Status.Percent = progressOf(seen.state.Disks)
	}
	if !done {
		return pollInterval, nil
	}
	i.object.Status.Warnings = append(i.object.Status.Warnings, seen.state.Warnings...)
	i.sealed(seen.state.Seal)
	i.object.Status.Percent = 100
	i.progressing(v1beta1.TransferPublishing, v1beta1.ReasonReconciling, "creating the template")
	// That all digests are verified is stored before the mover, which reports it, is gone.
	if err := i.write(ctx); err != nil {
		return 0, err
	}
	return time.Millisecond, i.release(ctx, name, seen.ip)
}

// startImport creates the volumes of the disks, and the mover that writes them.
func (i *importing) startImport(ctx context.Context) error {
	task := i.task(transfer.Import)
	task.Description, task.Revision = i.object.Status.Plan.Description, i.object.Status.Plan.Revision
	copies, err := copySizes(i.object.Status.Plan.Template.Raw)
	if err != nil {
		return err
	}
	j := job{}
	for _, disk := range i.object.Status.Plan.Disks {
		chosen, err := i.storageOf(ctx, i.wanted(disk), disk.Size, copies[disk.Name])
		if err != nil {
			return err
		}
		claim := i.owner.claim(disk.Name, chosen.size, chosen.class, chosen.modes, &chosen.mode)
		if err := ensure(ctx, i.cluster, claim); err != nil {
			return err
		}
		block := chosen.mode == corev1.PersistentVolumeBlock
		j.disks = append(j.disks, jobDisk{name: disk.Name, claim: disk.Name, block: block})
		task.Disks = append(task.Disks, transfer.Disk{Name: disk.Name, Block: block, Size: disk.Size, Volume: disk.Volume, File: disk.File, CDROM: disk.CDROM})
	}
	return i.start(ctx, importation, task, j)
}

// wanted returns what the user requests for the storage of a disk.
func (i *importing) wanted(disk v1beta1.ImportPlanDisk) v1beta1.ImportStorage {
	var others v1beta1.ImportStorage
	for _, each := range i.object.Spec.Storage {
		switch each.Disk {
		case disk.Volume:
			return each
		case "*":
			others = each
		}
	}
	return others
}

// publish creates the template, and makes it the owner of the disks.
func (i *importing) publish(ctx context.Context) (time.Duration, error) {
	template := &v1beta1.VirtualMachineTemplate{}
	found, err := get(ctx, i.cluster, i.object.Namespace, i.templateName(), template)
	if err != nil {
		return 0, err
	}
	if !found {
		if err := i.authorized(ctx); err != nil {
			return 0, err
		}
		if err := json.Unmarshal(i.object.Status.Plan.Template.Raw, template); err != nil {
			return 0, &permanentError{transfer.ReasonNotAPackage, err.Error()}
		}
		metadata := i.owner.metadata(i.templateName())
		metadata.Annotations = template.Annotations
		// The policy template-import requires of the user that they may create DataVolumes here, which copy every claim of the namespace.
		metadata.Labels[contract.LabelDiskAccess] = contract.DiskAccessLend
		maps.Copy(metadata.Labels, i.object.Spec.TemplateLabels)
		template.ObjectMeta = metadata
		if err := i.cluster.Create(ctx, template); err != nil {
			return 0, fmt.Errorf("creating VirtualMachineTemplate %s/%s: %w", i.object.Namespace, i.templateName(), err)
		}
	}
	if template.Labels[v1beta1.LabelTransferUID] != string(i.object.UID) {
		return 0, &permanentError{ReasonNameTaken, fmt.Sprintf("VirtualMachineTemplate %s/%s was created by another user in the meantime", i.object.Namespace, i.templateName())}
	}
	owned := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "VirtualMachineTemplate", Name: template.Name, UID: template.UID}
	for _, disk := range i.object.Status.Plan.Disks {
		claim := &corev1.PersistentVolumeClaim{}
		found, err := get(ctx, i.cluster, i.object.Namespace, disk.Name, claim)
		if err != nil {
			return 0, err
		}
		if !found || claim.DeletionTimestamp != nil {
			return 0, &permanentError{ReasonDiskLost, fmt.Sprintf("PersistentVolumeClaim %s/%s was deleted in the meantime", i.object.Namespace, disk.Name)}
		}
		if err := i.own(ctx, claim, owned); err != nil {
			return 0, err
		}
	}
	if err := i.own(ctx, template); err != nil {
		return 0, err
	}
	if err := i.clean(ctx); err != nil {
		return 0, err
	}
	if err := i.sealTemplate(ctx, template, template.Generation); err != nil {
		// It is a report, and must not hold the import up.
		i.event(corev1.EventTypeWarning, "SealNotReported", err.Error())
	}
	now := metav1.NewTime(i.clock.Now())
	i.object.Status.TemplateRef, i.object.Status.CompletionTime = &corev1.LocalObjectReference{Name: template.Name}, &now
	i.succeed(v1beta1.TransferSucceeded, fmt.Sprintf("VirtualMachineTemplate %s/%s was created", i.object.Namespace, template.Name), size(i.object.Status.Plan))
	return 0, nil
}

func size(plan *v1beta1.ImportPlan) int64 {
	if plan == nil || plan.Size == nil {
		return 0
	}
	return *plan.Size
}

// own replaces the import as owner of an object by others.
func (i *importing) own(ctx context.Context, object client.Object, owners ...metav1.OwnerReference) error {
	before, _ := object.DeepCopyObject().(client.Object)
	remaining := slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(reference metav1.OwnerReference) bool { return reference.UID == i.object.UID })
	for _, each := range owners {
		if !slices.ContainsFunc(remaining, func(reference metav1.OwnerReference) bool { return reference.UID == each.UID }) {
			remaining = append(remaining, each)
		}
	}
	if slices.EqualFunc(remaining, object.GetOwnerReferences(), func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }) {
		return nil
	}
	object.SetOwnerReferences(remaining)
	return i.cluster.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// clean deletes what only the transfer needs.
func (i *importing) clean(ctx context.Context) error {
	var failures []error
	for _, suffix := range []string{inspection, importation} {
		name := metav1.ObjectMeta{Namespace: i.object.Namespace, Name: i.owner.called(suffix)}
		failures = append(failures, i.deleteJob(ctx, i.owner, name.Name), remove(ctx, i.cluster, &corev1.Secret{ObjectMeta: name}))
	}
	return errors.Join(append(failures, remove(ctx, i.cluster, i.networkPolicy()), i.forget(ctx))...)
}

// clear deletes all that the import has made, and still owns.
func (i *importing) clear(ctx context.Context) error {
	failures := []error{i.clean(ctx)}
	template := &v1beta1.VirtualMachineTemplate{}
	found, err := get(ctx, i.cluster, i.object.Namespace, i.templateName(), template)
	failures = append(failures, err)
	if found && slices.ContainsFunc(template.OwnerReferences, i.isOwner) {
		failures = append(failures, remove(ctx, i.cluster, template))
	}
	claims := &corev1.PersistentVolumeClaimList{}
	failures = append(failures, i.cluster.List(ctx, claims, client.InNamespace(i.object.Namespace), client.MatchingLabels(i.owner.labels())))
	for index := range claims.Items {
		if slices.ContainsFunc(claims.Items[index].OwnerReferences, i.isOwner) {
			failures = append(failures, remove(ctx, i.cluster, &claims.Items[index]))
		}
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("deleting what the import has made: %w", err)
	}
	now := metav1.NewTime(i.clock.Now())
	i.object.Status.CompletionTime = &now
	return nil
}

func (i *importing) isOwner(reference metav1.OwnerReference) bool {
	return reference.UID == i.object.UID
}

func (i *importing) templateName() string {
	if i.object.Spec.TemplateName != "" {
		return i.object.Spec.TemplateName
	}
	return i.object.Name
}
