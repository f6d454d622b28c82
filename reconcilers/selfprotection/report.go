package selfprotection

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// reasonRestored is the reason of the event about a restored object.
	reasonRestored = "Restored"
	// actionRestore is what the event says was done.
	actionRestore = "Restore"
	// maximumPaths is how many differing fields an event names.
	maximumPaths = 5
)

// report tells of a restored object: event, metric and log.
func (r *Reconciler) report(ctx context.Context, found release, object *unstructured.Unstructured, who identity, why string) {
	r.memory[who].restored = r.options.Clock.Now()
	r.metrics.restored.WithLabelValues(who.kind, who.name).Inc()
	logf.FromContext(ctx).Info("restored a protected object", "object", who.String(), "why", why)
	r.options.Recorder.Eventf(found.configMap, object, corev1.EventTypeWarning, reasonRestored, actionRestore,
		"%s was restored: %s", who, why)
}

// changed says what somebody had changed.
func changed(paths []string, manager string) string {
	more := ""
	if len(paths) > maximumPaths {
		more = fmt.Sprintf(" and %d more fields", len(paths)-maximumPaths)
		paths = paths[:maximumPaths]
	}
	text := strings.Join(paths, ", ") + more + " had been changed"
	if manager != "" {
		text += ", last by field manager " + fmt.Sprintf("%q", manager)
	}
	return text
}

// handOver makes the field manager that installed the release the owner of the fields that a replacement has written. The
// API server writes the status of a policy that has changed, so it is tried again on what is stored then. It fails quietly
// when others go on writing: then another replacement follows, or the next upgrade says that there is a conflict.
func (r *Reconciler) handOver(ctx context.Context, found release, object *unstructured.Unstructured) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(object, sets.New(fieldManager), found.manager)
		if err != nil || patch == nil {
			return err
		}
		err = r.options.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(fieldManager))
		if apierrors.IsConflict(err) {
			if err := r.options.Reader.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("handing the fields of %s over to %s: %w", object.GetName(), found.manager, err)
	}
	return nil
}
