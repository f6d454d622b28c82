package policydata

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/rego"
)

// quotas is a watch cache of ResourceQuotas. It reads them once a policy needs them.
type quotas struct {
	reflector *cache.Reflector
	index     *watching.Index[*corev1.ResourceQuota, quota]
	needed    needed
}

// quota is what is stored of a ResourceQuota.
type quota struct {
	name string
	// value is made when it is first read. Most are never read.
	value func() (*rego.Value, error)
}

// newQuotas returns a cache that calls synced when the first list has arrived.
func newQuotas(source cache.ListerWatcher, log logr.Logger, synced func()) *quotas {
	q := &quotas{index: newQuotaIndex(synced), needed: newNeeded()}
	q.reflector = watching.Reflector("policydata/resourcequotas", source, &corev1.ResourceQuota{}, q.index, log)
	return q
}

func newQuotaIndex(synced func()) *watching.Index[*corev1.ResourceQuota, quota] {
	return watching.NewIndex(watching.Options[*corev1.ResourceQuota, quota]{
		Kind: "ResourceQuotas",
		Convert: func(object *corev1.ResourceQuota, _ quota, _ bool) (quota, error) {
			hard, used := object.Spec.Hard, object.Status.Used
			return quota{object.Name, sync.OnceValues(func() (*rego.Value, error) { return quotaValue(hard, used) })}, nil
		},
		Changed: func(update watching.Update[quota]) {
			if update.First {
				synced()
			}
		},
	})
}

// run fills and updates the cache once it is needed, until ctx ends.
func (q *quotas) run(ctx context.Context, log logr.Logger) {
	if q.needed.wait(ctx) {
		watching.Run(ctx, log, q.reflector)
	}
}

// quotaValue returns the value of a ResourceQuota, with its quantities as texts.
func quotaValue(hard, used corev1.ResourceList) (*rego.Value, error) {
	texts := func(list corev1.ResourceList) map[string]any {
		all := make(map[string]any, len(list))
		for name, quantity := range list {
			all[string(name)] = quantity.String()
		}
		return all
	}
	return rego.NewValue(map[string]any{"hard": texts(hard), "used": texts(used)})
}

// namedQuota is the ResourceQuota of one name in each namespace. It implements rego.Source.
type namedQuota struct {
	of   *quotas
	name string
}

var _ rego.Source = namedQuota{}

// Value implements rego.Source. A namespace without the ResourceQuota has a value without limits.
func (n namedQuota) Value(of rego.ObjectKey) (*rego.Value, error) {
	if of.Namespace == "" {
		return nil, errNoNamespace
	}
	stored, found := n.of.index.Get(of.Namespace, n.name)
	if !found {
		return quotaValue(nil, nil)
	}
	return stored.value()
}
