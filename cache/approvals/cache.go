package approvals

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
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
	client, err := metadata.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the approval cache's client of namespaces: %w", err)
	}
	c := newCache(o, approvals, watching.Source(client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")), watching.Selector{}))
	if o.Registerer != nil {
		if err := o.Registerer.Register(&collector{index: c.index}); err != nil {
			return nil, fmt.Errorf("registering approval cache metrics: %w", err)
		}
	}
	return c, nil
}

func newCache(o Options, approvals, namespaces cache.ListerWatcher) *Cache {
	c := &Cache{index: newIndex(o.Logger, o.ExcludedNamespaces), log: o.Logger, waitTimeout: o.WaitTimeout}
	if c.waitTimeout == 0 {
		c.waitTimeout = DefaultWaitTimeout
	}
	c.reflectors = []*cache.Reflector{
		watching.Reflector("approvalcache/approvals", approvals, &v1alpha1.TemplateApproval{}, c.index.approvals, c.log),
		watching.Reflector("approvalcache/namespaces", namespaces, &metav1.PartialObjectMetadata{}, c.index.namespaces, c.log),
	}
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
	if c.await(context.Background(), func() (found bool) {
		approvals, found = c.index.approvalsFor(namespace)
		return found
	}) {
		return approvals
	}
	return []*approval.Approval{approval.Undecided(fmt.Sprintf(
		"namespace %s is not in the cache yet, so the approvals that select it are unknown; try again in a moment", namespace))}
}

// Namespace returns the labels and annotations of a namespace, which must not be modified. If the namespace is not in the
// cache, the call waits for it, until the timeout or until ctx ends. The last result is false if it has not arrived by then.
func (c *Cache) Namespace(ctx context.Context, name string) (labels, annotations map[string]string, found bool) {
	found = c.await(ctx, func() bool {
		of, found := c.index.namespaces.Get("", name)
		labels, annotations = of.labels, of.annotations
		return found
	})
	return labels, annotations, found
}

// await waits for a change of a namespace.
func (c *Cache) await(ctx context.Context, condition func() bool) bool {
	return await.Until(ctx, c.waitTimeout, &c.index.changed, condition)
}

// AwaitState returns when an existing namespace has the label that states whether it is governed, after the timeout, or when
// ctx ends. A namespace is often created a moment before the first VM in it, and admission policies deny what approvals may
// govern while the label is missing.
func (c *Cache) AwaitState(ctx context.Context, namespace string) {
	decided := func() bool {
		of, _ := c.index.namespaces.Get("", namespace)
		_, labelled := of.labels[v1alpha1.LabelGoverned]
		return labelled
	}
	if decided() {
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
