package selfprotection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/vmstencil/stencil/internal/excerpt"
)

const (
	// reasonRestored is the reason of the event about a restored object.
	reasonRestored = "Restored"
	// actionRestore is the action of that event.
	actionRestore = "Restore"
	// reasonChanged is the reason of the event about an object that is not restored, and actionReport its action.
	reasonChanged = "Changed"
	actionReport  = "Report"
	// deleted is the problem of an object that does not exist.
	deleted = "it was deleted"
	// maximumPaths is the maximum number of differing fields in an event.
	maximumPaths = 5
)

// report reports a restored object: event, metric and log.
func (r *Reconciler) report(ctx context.Context, found release, object *unstructured.Unstructured, who identity, why string) {
	r.memory[who].restored = r.options.Clock.Now()
	r.metrics.restored.WithLabelValues(who.kind, who.name).Inc()
	logf.FromContext(ctx).Info("restored a protected object", "object", who.String(), "why", why)
	r.options.Recorder.Eventf(found.configMap, object, corev1.EventTypeWarning, reasonRestored, actionRestore,
		"%s was restored: %s", who, why)
}

// problem returns how a stored object that is not restored differs from its manifest; empty if it does not.
func (found release) problem(m manifest, stored *unstructured.Unstructured) string {
	paths := contentOf(stored, m).stripped().differences(contentOf(m.object, m).stripped())
	if len(paths) == 0 {
		return ""
	}
	return changed(paths, lastChange(stored.GetManagedFields(), found.manager))
}

// reportChange reports a changed or missing object that is not restored: event, metric and log. Each problem is reported once.
func (r *Reconciler) reportChange(ctx context.Context, found release, who identity) {
	cached := r.memory[who]
	problem := cached.problem
	cached.reported = problem
	object := found.stored[who]
	if object == nil {
		object = who.empty()
	}
	r.metrics.changed.WithLabelValues(who.kind, who.name).Set(1)
	logf.FromContext(ctx).Info("a protected object is not as the release has it", "object", who.String(), "problem", problem)
	r.options.Recorder.Eventf(found.configMap, object, corev1.EventTypeWarning, reasonChanged, actionReport,
		"%s is not as the release has it: %s; install the chart again", who, problem)
}

// changed returns a text that names the changed fields and the field manager that changed them last.
func changed(paths []string, manager string) string {
	text := excerpt.List(paths, maximumPaths, "fields") + " had been changed"
	if manager != "" {
		text += ", last by field manager " + fmt.Sprintf("%q", manager)
	}
	return text
}

// handOver transfers the fields of a replaced object to the field manager that installed the release. The API server writes the status of a
// changed policy, so the transfer is tried again with the stored object after a conflict. If the conflicts continue, it returns no error:
// either another replacement follows, or the next upgrade reports a conflict.
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
