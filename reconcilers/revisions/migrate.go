package revisions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/revision"
)

// completionTimeout is how long a replacement that has begun may continue when the manager stops.
const completionTimeout = 10 * time.Second

// skipped is the error of a copy that is left as it is. It is no failure.
type skipped string

func (s skipped) Error() string { return string(s) }

// migrate brings one stored copy to the target version. The copy may have changed since it was read: each write is limited to the version that
// was read. It decides again, because start revisions may have added references.
func (c *cluster) migrate(ctx context.Context, e *entry) error {
	r, err := e.read()
	if err != nil {
		return err
	}
	d := c.decider.Decide(revision.Revision{Name: r.Name, Labels: r.Labels, Data: r.Data.Raw}, e.references)
	switch d.Action {
	case revision.Retain:
		return nil
	case revision.Relabel:
		return c.relabel(ctx, r, d.Converted.Labels)
	case revision.Replace:
		return c.replace(ctx, r, d.Converted, e.orphan())
	default:
		return skipped(d.Message)
	}
}

// plan does what migrate does, in dry runs only.
func (c *cluster) plan(ctx context.Context, e *entry) error {
	r, err := e.read()
	if err != nil {
		return err
	}
	d := c.decider.Decide(revision.Revision{Name: r.Name, Labels: r.Labels, Data: r.Data.Raw}, e.references)
	switch d.Action {
	case revision.Skip:
		return skipped(d.Message)
	case revision.Replace:
		backup, o, err := backupOf(r, d.Converted, e.orphan())
		if err != nil {
			return err
		}
		if err := c.try(ctx, replacement(backup, o)); err != nil {
			return skippedOr(err)
		}
	}
	return nil
}

// relabel writes the labels of a copy whose data is current.
func (c *cluster) relabel(ctx context.Context, r *appsv1.ControllerRevision, labels map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": r.UID, "resourceVersion": r.ResourceVersion, "labels": labels}})
	if err != nil {
		return fmt.Errorf("encoding the labels of ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	_, err = c.writes.ControllerRevisions(r.Namespace).Patch(ctx, r.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return skipped("it was changed or deleted meanwhile")
	}
	if err != nil {
		return fmt.Errorf("labelling ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	return nil
}

// replace replaces a copy by its converted form of the same name. A crash leaves at each point what heal completes: nothing, a backup beside
// the original, a backup alone, or a backup beside the replacement.
func (c *cluster) replace(ctx context.Context, r *appsv1.ControllerRevision, converted *revision.Converted, orphan bool) error {
	backup, o, err := backupOf(r, converted, orphan)
	if err != nil {
		return err
	}
	if o, err = c.store(ctx, backup, o); err != nil {
		return err
	}
	next := replacement(backup, o)
	if err := c.rehearse(ctx, next); err != nil {
		return errors.Join(skippedOr(err), c.discard(ctx, backup.Namespace, backup.Name))
	}
	return c.exchange(ctx, r, next)
}

// store creates a backup with what it states. One that exists already, from an attempt before, must be the same.
func (c *cluster) store(ctx context.Context, backup *appsv1.ControllerRevision, o *original) (*original, error) {
	err := c.create(ctx, backup, false)
	if apierrors.IsAlreadyExists(err) {
		stored, err := c.get(ctx, backup.Namespace, backup.Name)
		if err != nil {
			return nil, err
		}
		if stored == nil || !isBackup(stored) || stored.Annotations[annotationBackup] != backup.Annotations[annotationBackup] || !slices.EqualFunc(stored.OwnerReferences, backup.OwnerReferences, sameOwner) {
			return nil, c.refresh(ctx, stored, backup)
		}
		return readBackup(stored)
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return nil, skipped("the backup is denied: " + err.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("creating backup %s/%s: %w", backup.Namespace, backup.Name, err)
	}
	return o, nil
}

// refresh deletes the backup of an earlier object with the same name and bytes. The next pass creates it again.
func (c *cluster) refresh(ctx context.Context, stored, wanted *appsv1.ControllerRevision) error {
	if stored != nil && !isBackup(stored) {
		return skipped("ControllerRevision " + stored.Name + " has the name of the backup")
	}
	if err := c.discard(ctx, wanted.Namespace, wanted.Name); err != nil {
		return err
	}
	return skipped("an older backup was deleted; it is created in the next pass")
}

func sameOwner(a, b metav1.OwnerReference) bool { return a.UID == b.UID && a.Name == b.Name }

// try creates the replacement in a dry run under another name, so that quotas, webhooks and policies evaluate it.
func (c *cluster) try(ctx context.Context, next *appsv1.ControllerRevision) error {
	trial := next.DeepCopy()
	trial.Name = derivedName(next.Name, trialInfix, digest(next.Data.Raw))
	return c.create(ctx, trial, true)
}

// denied reports whether the API server, a webhook, a policy or a quota denied an object.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

func skippedOr(err error) error {
	if denied(err) {
		return skipped("the replacement is denied: " + err.Error())
	}
	return fmt.Errorf("trying the replacement: %w", err)
}

// exchange deletes a ControllerRevision and creates another one of the same name. Once it has deleted, it continues when the manager stops. If the
// other one is denied all the same, the deleted one is created again.
func (c *cluster) exchange(ctx context.Context, old, next *appsv1.ControllerRevision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), completionTimeout)
	defer cancel()
	err := c.remove(ctx, old)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return skipped("it was changed or deleted meanwhile")
	}
	if err != nil {
		return fmt.Errorf("deleting ControllerRevision %s/%s: %w", old.Namespace, old.Name, err)
	}
	err = c.fill(ctx, next)
	if !denied(err) {
		return err
	}
	c.trials.forget(trialKeyOf(next))
	if again := c.fill(ctx, derived(old, old.Name, old.Labels, old.Annotations, old.Data.Raw)); again != nil {
		return errors.Join(err, again)
	}
	return skipped("the replacement was denied after the deletion, and the copy was created again: " + err.Error())
}

// fill creates a ControllerRevision whose name is free. Another replica, or virt-controller, may have created it meanwhile.
func (c *cluster) fill(ctx context.Context, next *appsv1.ControllerRevision) error {
	err := c.create(ctx, next, false)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating ControllerRevision %s/%s: %w", next.Namespace, next.Name, err)
	}
	return nil
}

// discard deletes a backup.
func (c *cluster) discard(ctx context.Context, namespace, name string) error {
	found, err := c.get(ctx, namespace, name)
	if err != nil || found == nil || !isBackup(found) {
		return err
	}
	if err := c.remove(ctx, found); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting backup %s/%s: %w", namespace, name, err)
	}
	return nil
}
