package revisions

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/revision"
)

const (
	// trialLifetime is how long one dry run is enough for the copies of one namespace, kind and kind of owner. Webhooks and policies for
	// ControllerRevisions distinguish these, if anything.
	trialLifetime = 10 * time.Second
	// quotaKey is the resource of ResourceQuotas that limits the number of ControllerRevisions.
	quotaKey corev1.ResourceName = "count/controllerrevisions.apps"
)

// trials are the dry runs that the API server permitted, by what they stand for.
type trials struct {
	clock  clock.PassiveClock
	mutex  sync.Mutex
	passed map[trialKey]time.Time
}

// trialKey is what copies have in common that one dry run stands for.
type trialKey struct{ namespace, kind, owner string }

func trialKeyOf(next *appsv1.ControllerRevision) trialKey {
	key := trialKey{namespace: next.Namespace, kind: next.Labels[revision.LabelKind]}
	for _, owner := range next.OwnerReferences {
		key.owner = owner.Kind
	}
	return key
}

func (t *trials) recent(key trialKey) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.clock.Since(t.passed[key]) < trialLifetime
}

// pass records a dry run that began at a time.
func (t *trials) pass(key trialKey, began time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.passed[key] = began
}

// forget makes the next copy have a dry run.
func (t *trials) forget(key trialKey) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.passed, key)
}

// rehearse tries the replacement unless a dry run a moment ago stands for it. In a namespace with a quota for ControllerRevisions each copy is tried:
// the quota changes with each. So is one whose labels the API server may reject, because nothing else of a replacement depends on the copy: its
// backup, which exists by now, is larger and has the same owner.
func (c *cluster) rehearse(ctx context.Context, next *appsv1.ControllerRevision) error {
	key := trialKeyOf(next)
	valid := len(validation.ValidateLabels(next.Labels, field.NewPath("metadata", "labels"))) == 0
	if valid && c.trials.recent(key) {
		return nil
	}
	began := c.trials.clock.Now()
	if err := c.try(ctx, next); err != nil {
		return err
	}
	limited, err := c.limited(ctx, next.Namespace)
	if err != nil {
		return err
	}
	if valid && !limited {
		c.trials.pass(key, began)
	}
	return nil
}

// limited reports whether a quota limits the number of ControllerRevisions of a namespace. It may, if the account cannot read quotas.
func (c *cluster) limited(ctx context.Context, namespace string) (bool, error) {
	quotas, err := c.quotas.ResourceQuotas(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("listing the quotas of namespace %s: %w", namespace, err)
	}
	for i := range quotas.Items {
		if _, limits := quotas.Items[i].Spec.Hard[quotaKey]; limits {
			return true, nil
		}
	}
	return false, nil
}
