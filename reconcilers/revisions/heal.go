package revisions

import (
	"bytes"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/revision"
)

// backupResult is what was done with a backup.
type backupResult int

const (
	retained backupResult = iota
	healed
	expired
	rolledBack
)

// backupState is a backup with what it is the backup of.
type backupState struct {
	backup   *appsv1.ControllerRevision
	original *original
	// current is the ControllerRevision of the original's name; nil if there is none.
	current *appsv1.ControllerRevision
}

func (c *cluster) readState(ctx context.Context, key types.NamespacedName) (*backupState, error) {
	backup, err := c.get(ctx, key.Namespace, key.Name)
	if err != nil || backup == nil || backup.DeletionTimestamp != nil {
		return nil, err
	}
	o, err := readBackup(backup)
	if err != nil {
		return nil, err
	}
	current, err := c.get(ctx, key.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	return &backupState{backup, o, current}, nil
}

// missing reports whether the original was deleted and not replaced, so that a reference is broken. virt-controller and the garbage collector
// delete copies that nothing refers to any more; those are not created again.
func (b *backupState) missing(inv *inventory) bool {
	key := types.NamespacedName{Namespace: b.backup.Namespace, Name: b.original.Name}
	return b.current == nil && (len(inv.references[key]) > 0 || b.original.Orphan)
}

// ownerGone reports whether the garbage collector is about to delete the backup.
func (b *backupState) ownerGone(inv *inventory) bool {
	for _, owner := range b.backup.OwnerReferences {
		if live := inv.state.owner(b.backup.Namespace, owner); live != owner.UID {
			return true
		}
	}
	return false
}

// heal completes a replacement that was interrupted, and deletes backups that have expired.
func (c *cluster) heal(ctx context.Context, inv *inventory, key types.NamespacedName, oldest time.Time) (backupResult, error) {
	b, err := c.readState(ctx, key)
	if err != nil || b == nil || b.ownerGone(inv) {
		return retained, err
	}
	switch {
	case b.missing(inv):
		if err := b.prove(); err != nil {
			return retained, err
		}
		return healed, c.fill(ctx, replacement(b.backup, b.original))
	case b.backup.CreationTimestamp.Time.Before(oldest) && (b.current == nil || !bytes.Equal(b.current.Data.Raw, b.backup.Data.Raw)):
		if err := c.remove(ctx, b.backup); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return retained, fmt.Errorf("deleting backup %s: %w", key, err)
		}
		return expired, nil
	}
	return retained, nil
}

// prove checks again that the replacement in a backup has the content of the original.
func (b *backupState) prove() error {
	converted, err := revision.Decode(b.original.Converted, revision.UnknownFamily)
	if err != nil {
		return fmt.Errorf("the replacement in backup %s/%s: %w", b.backup.Namespace, b.backup.Name, err)
	}
	stored, err := revision.Decode(b.backup.Data.Raw, converted.Family)
	if err == nil {
		err = stored.Prove(b.original.Converted)
	}
	if err != nil {
		return fmt.Errorf("backup %s/%s: %w", b.backup.Namespace, b.backup.Name, err)
	}
	return nil
}

// rollBack restores the original of a backup, and deletes the backup.
func (c *cluster) rollBack(ctx context.Context, inv *inventory, key types.NamespacedName) (backupResult, error) {
	b, err := c.readState(ctx, key)
	if err != nil || b == nil || b.ownerGone(inv) {
		return retained, err
	}
	old := restored(b.backup, b.original)
	switch {
	case b.current == nil && b.missing(inv):
		if err := c.fill(ctx, old); err != nil {
			return retained, err
		}
	case b.current == nil:
		return retained, nil
	case bytes.Equal(b.current.Data.Raw, b.backup.Data.Raw):
		// It was never replaced, or is restored already.
	case b.current.Annotations[annotationBackup] != b.backup.Name:
		return retained, skipped(fmt.Sprintf("ControllerRevision %s was not made from backup %s", b.current.Name, b.backup.Name))
	default:
		e := newEntry(b.current)
		e.references = inv.references[e.NamespacedName]
		if reason := inv.state.guard(e); reason != "" {
			return retained, skipped(reason)
		}
		if err := c.try(ctx, old); err != nil {
			return retained, skippedOr(err)
		}
		if err := c.exchange(ctx, b.current, old); err != nil {
			return retained, err
		}
	}
	return rolledBack, c.discard(ctx, key.Namespace, key.Name)
}
