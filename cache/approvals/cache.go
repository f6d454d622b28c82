package approvals

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/cache/watching"
)

// DefaultWaitTimeout is the default timeout of waiting for a namespace.
const DefaultWaitTimeout = time.Second

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Registerer registers the metrics; if nil, there are none.
	Registerer prometheus.Registerer
	// ExcludedNamespaces are namespaces that no approval selects, in addition to those of Kubernetes: Stencil's.
	ExcludedNamespaces []string
	// WaitTimeout is the timeout of waiting for a namespace that is not in the cache. Default: 1 s. It must be shorter than the
	// timeout of a webhook.
	WaitTimeout time.Duration
}

// Cache is a watch cache of compiled approvals and of the labels of namespaces. It
// runs until the context of Start ends, on every replica. All methods are safe for
// concurrent use.
type Cache struct {
	index       *index
	reflectors  []*cache.Reflector
	log         logr.Logger
	waitTimeout time.Duration
}

// New returns a Cache that has not started. It fails when no client can be made of
// the configuration or the metrics are registered already.
func New(o Options) (*Cache, error) {
	approvals, err := watching.Resource(o.Config, v1alpha1.GroupVersion, v1alpha1.AddToScheme, "templateapprovals")
	if err != nil {
		return nil, fmt.Errorf("making the approval cache's client of approvals: %w", err)
	}
	namespaces, err := watchNamespaces(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the approval cache's client of namespaces: %w", err)
	}
	c := newCache(o, approvals, namespaces)
	if o.Registerer != nil {
		if err := o.Registerer.Register(&collector{index: c.index}); err != nil {
			return nil, fmt.Errorf("registering approval cache metrics: %w", err)
		}
	}
	return c, nil
}

func newCache(o Options, approvals, namespaces cache.ListerWatcher) *Cache {
	c := &Cache{index: newIndex(), log: o.Logger, waitTimeout: o.WaitTimeout}
	if c.waitTimeout == 0 {
		c.waitTimeout = DefaultWaitTimeout
	}
	reflect := func(name string, source cache.ListerWatcher, kind runtime.Object, into cache.ReflectorStore) {
		c.reflectors = append(c.reflectors, watching.Reflector("approvalcache/"+name, source, kind, into, c.log))
	}
	reflect("approvals", approvals, &v1alpha1.TemplateApproval{}, newApprovalStore(c.index, c.log, o.ExcludedNamespaces))
	reflect("namespaces", namespaces, &metav1.PartialObjectMetadata{}, newNamespaceStore(c.index))
	return c
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	watching.Run(ctx, c.log, c.reflectors...)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first lists of approvals and namespaces have arrived. Until then, results may be incomplete.
func (c *Cache) Synced() bool { return c.index.hasSynced() }

// ApprovalsFor returns the approvals that select a namespace, sorted by name. The namespace is governed if there is at least
// one. The slice must not be modified.
//
// A namespace is often created a moment before the first VM in it, and the watch may be slightly behind. If the namespace is
// not in the cache, the call waits for it. After the timeout it returns a single approval that approves nothing.
func (c *Cache) ApprovalsFor(namespace string) []*approval.Approval {
	var approvals []*approval.Approval
	if c.await(context.Background(), func() (found bool, changed <-chan struct{}) {
		approvals, found, changed = c.index.approvalsFor(namespace)
		return found, changed
	}) {
		return approvals
	}
	return []*approval.Approval{approval.Undecided(fmt.Sprintf(
		"namespace %s is not in the cache yet, so the approvals that select it are unknown; try again in a moment", namespace))}
}

// Namespace returns the labels and annotations of a namespace, which must not be modified. If the namespace is not in the
// cache, the call waits for it, until the timeout or until ctx ends. The last result is false if it has not arrived by then.
func (c *Cache) Namespace(ctx context.Context, name string) (labels, annotations map[string]string, found bool) {
	found = c.await(ctx, func() (found bool, changed <-chan struct{}) {
		of, found, changed := c.index.namespace(name)
		labels, annotations = of.labels, of.annotations
		return found, changed
	})
	return labels, annotations, found
}

// await repeats a lookup until it finds something. It returns false if the timeout or ctx ends first. The channel that the
// lookup returns is closed when another one may have a different result.
func (c *Cache) await(ctx context.Context, check func() (found bool, changed <-chan struct{})) bool {
	found, changed := check()
	if found {
		return true
	}
	timer := time.NewTimer(c.waitTimeout)
	defer timer.Stop()
	for {
		select {
		case <-changed:
			if found, changed = check(); found {
				return true
			}
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// AwaitState returns when an existing namespace has the label that states whether it is governed, after the timeout, or when
// ctx ends. A namespace is often created a moment before the first VM in it, and admission policies deny what approvals may
// govern while the label is missing.
func (c *Cache) AwaitState(ctx context.Context, namespace string) {
	decided := func() (bool, <-chan struct{}) {
		of, _, changed := c.index.namespace(namespace)
		_, labelled := of.labels[v1alpha1.LabelGoverned]
		return labelled, changed
	}
	if yes, _ := decided(); yes {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.waitTimeout)
	defer cancel()
	if !c.await(ctx, decided) {
		return
	}
	// The API server has its own watch, which has a similar delay.
	select {
	case <-time.After(propagation):
	case <-ctx.Done():
	}
}

// propagation is how long a write usually takes to reach the watches of all API servers.
const propagation = 25 * time.Millisecond

// Approvals returns all approvals, sorted by name. The slice must not be modified.
func (c *Cache) Approvals() []*approval.Approval { return c.index.all() }

// NamespacesOf returns the names of the existing namespaces that an approval selects, sorted. The approval need not be in the
// cache.
func (c *Cache) NamespacesOf(a *approval.Approval) []string { return c.index.namespacesOf(a) }
