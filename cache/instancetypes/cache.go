package instancetypes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	instancetypeapi "kubevirt.io/api/instancetype"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// DefaultWaitTimeout is the default timeout of Resolve.
const DefaultWaitTimeout = 300 * time.Millisecond

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Registerer registers the metrics; if nil, there are none.
	Registerer prometheus.Registerer
	// WithoutRevisions leaves out the ControllerRevisions that stored VMs reference, for callers that resolve only new VMs.
	// Revisions are most of the cache.
	WithoutRevisions bool
	// WaitTimeout is the timeout of waiting for an object that is not in the cache. Default: 300 ms. It must be shorter than the
	// timeout of a webhook.
	WaitTimeout time.Duration
}

// Cache is a watch cache of instance types, preferences and their revisions. It runs
// until the context of Start ends, on every replica. All methods are safe for concurrent
// use.
type Cache struct {
	index       *index
	served      discovery.ServerResourcesInterface
	watches     []watching.Late
	log         logr.Logger
	waitTimeout time.Duration
}

// New returns a Cache that has not started. It fails when no client can be made of the
// configuration or the metrics are registered already.
func New(o Options) (*Cache, error) {
	client, err1 := dynamic.NewForConfig(o.Config)
	// There is one revision or more for each VM. Decoding protobuf takes a fraction of decoding JSON, and compressing each event takes the API
	// server longer than sending it.
	compact := rest.CopyConfig(o.Config)
	compact.DisableCompression = true
	compact.ContentType, compact.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	revisions, err2 := appsclient.NewForConfig(compact)
	served, err3 := discovery.NewDiscoveryClientForConfig(o.Config)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("making the client of the instance type cache: %w", err)
	}
	sources := map[string]cache.ListerWatcher{}
	for kind, resource := range sizing.Resources {
		sources[kind] = watching.Source(client.Resource(resource), watching.Selector{})
	}
	if !o.WithoutRevisions {
		sources[kindRevision] = watching.Source(revisions.ControllerRevisions(metav1.NamespaceAll), watching.Selector{Labels: instancetypeapi.ControllerRevisionObjectKindLabel})
	}
	c := newCache(o, served, sources)
	if o.Registerer != nil {
		if err := o.Registerer.Register(&collector{index: c.index}); err != nil {
			return nil, fmt.Errorf("registering instance type cache metrics: %w", err)
		}
	}
	return c, nil
}

// resourceOf returns the resource of a watched kind.
func resourceOf(kind string) schema.GroupVersionResource {
	if kind == kindRevision {
		return appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
	}
	return sizing.Resources[kind]
}

// exampleOf returns an object of the type that the source of a kind returns.
func exampleOf(kind string) runtime.Object {
	if kind == kindRevision {
		return &appsv1.ControllerRevision{}
	}
	return &unstructured.Unstructured{}
}

func newCache(o Options, served discovery.ServerResourcesInterface, sources map[string]cache.ListerWatcher) *Cache {
	c := &Cache{index: newIndex(), served: served, log: o.Logger, waitTimeout: o.WaitTimeout}
	if c.waitTimeout == 0 {
		c.waitTimeout = DefaultWaitTimeout
	}
	for kind, into := range c.index.kinds {
		source := sources[kind]
		if source == nil {
			_ = into.Replace(nil, "") // An empty list cannot fail.
			continue
		}
		c.watches = append(c.watches, watching.Late{
			Name: "instancetypecache/" + kind, Resource: resourceOf(kind), Source: source, Example: exampleOf(kind), Into: into,
			Failed: into.FailIfNotServed,
		})
	}
	return c
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	watching.RunLate(ctx, c.log, c.served, c.watches...)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first list of each kind has arrived, or the kind is not served.
func (c *Cache) Synced() bool { return c.index.hasSynced() }

// Changed returns a channel that is closed as soon as an instance type or a preference is added, changed or deleted.
// Revisions are ignored: they never change, and each VirtualMachine adds one.
func (c *Cache) Changed() <-chan struct{} { return c.index.changed.Changed() }

// Written returns a channel that is closed by the next change of any cached object, revisions included, and by each first list.
func (c *Cache) Written() <-chan struct{} { return c.index.written.Changed() }

// Size returns the size of the VMs with a reference to an instance type, as Resolve would find it. It does not wait, and decodes each version of an
// instance type once.
func (c *Cache) Size(reference sizing.Reference) (sizing.Size, error) { return c.index.size(reference) }

// Resolve implements sizing.Resolver. An object and a VM that references it are often created together, and the watch may be
// slightly behind. If the object is not in the cache, Resolve waits until the timeout.
func (c *Cache) Resolve(ctx context.Context, reference sizing.Reference) (object map[string]any, err error) {
	await.Until(ctx, c.waitTimeout, &c.index.written, func() bool {
		object, err = c.index.resolve(reference)
		return err == nil
	})
	return object, err
}

// Cached returns a Resolver that does not wait, for callers that resolve stored VMs.
func (c *Cache) Cached() sizing.Resolver { return cachedResolver{c.index} }

type cachedResolver struct{ index *index }

// Resolve implements sizing.Resolver.
func (r cachedResolver) Resolve(_ context.Context, reference sizing.Reference) (map[string]any, error) {
	return r.index.resolve(reference)
}

var (
	errUnsynced = errors.New("the cache of instance types and preferences is not synced; try again in a moment")
	errMissing  = errors.New("it does not exist")
	errRevision = errors.New("it does not exist, or KubeVirt did not make it of an instance type or a preference")
)
