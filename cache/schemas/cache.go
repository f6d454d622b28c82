package schemas

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	policyschema "github.com/vmstencil/stencil/rego/schema"
	"github.com/vmstencil/stencil/rego/schema/definition"
)

// firstTimeout is how long policies wait for the first read. Then they are compiled without the fields of the installed KubeVirt, and again when these
// arrive.
const firstTimeout = 10 * time.Second

// followed are the definitions that are watched, with the version of their objects that policies read.
var followed = []struct{ name, kind, version string }{
	{"virtualmachines.kubevirt.io", "VirtualMachine", "v1"},
	{"virtualmachineinstancetypes.instancetype.kubevirt.io", policyschema.Instancetype, "v1beta1"},
	{"virtualmachinepreferences.instancetype.kubevirt.io", policyschema.Preference, "v1beta1"},
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Compiler compiles policies by schemas; a rego.Compiler implements it.
type Compiler interface {
	// UseSchemas replaces the schemas. After an error those of before stay in use.
	UseSchemas(*policyschema.Schemas) error
}

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Registerer registers the metrics; if nil, there are none.
	Registerer prometheus.Registerer
	// Compiler receives the schemas.
	Compiler Compiler
}

// Cache gives a compiler the schemas of the installed KubeVirt. It runs until the context of Start ends, on every replica. All methods are safe for
// concurrent use.
type Cache struct {
	compiler Compiler
	log      logr.Logger
	metrics  *metrics
	kinds    []*kind
	// observed is sent when a definition was read, changed when the compiler has received other schemas.
	observed, changed await.Signal
	// first is closed when all definitions have been read and used.
	first   chan struct{}
	timeout time.Duration
}

// kind is one of the kinds that are followed.
type kind struct {
	name, kind string
	reflector  *cache.Reflector
	// found has the definition, if it exists.
	found *watching.Index[*watching.Object[reading], reading]
	// used is the schema in use; nil before there is one.
	used *definition.Schema
	// seen describes what was logged last.
	seen string
}

// reading is what a definition was read as.
type reading struct {
	resourceVersion string
	schema          definition.Schema
	err             error
}

// New returns a Cache that has not started. It fails when no client can be made of the configuration or the metrics are registered already.
func New(o Options) (*Cache, error) {
	client, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the schemas of policies: %w", err)
	}
	resource := client.Resource(definitions)
	c := newCache(o, func(selector watching.Selector, read func(*unstructured.Unstructured) reading) cache.ListerWatcher {
		return watching.Reduced(resource, selector, read)
	})
	if o.Registerer != nil {
		if err := c.metrics.register(o.Registerer); err != nil {
			return nil, fmt.Errorf("registering the metrics of the schemas of policies: %w", err)
		}
	}
	return c, nil
}

// sourceOf returns the source of selected definitions.
type sourceOf func(watching.Selector, func(*unstructured.Unstructured) reading) cache.ListerWatcher

func newCache(o Options, from sourceOf) *Cache {
	c := &Cache{compiler: o.Compiler, log: o.Logger, metrics: newMetrics(), first: make(chan struct{}), timeout: firstTimeout}
	for _, each := range followed {
		one := &kind{name: each.name, kind: each.kind}
		one.found = watching.NewIndex(watching.Options[*watching.Object[reading], reading]{
			Kind:    "CustomResourceDefinitions",
			Convert: func(object *watching.Object[reading], _ reading, _ bool) (reading, error) { return object.Value, nil },
			Changed: func(watching.Update[reading]) { c.observed.Send() },
		})
		source := from(watching.Selector{Fields: fields.OneTermEqualSelector("metadata.name", each.name).String()},
			func(object *unstructured.Unstructured) reading { return read(object, each.version) })
		one.reflector = watching.Reflector("schemas-"+each.kind, source, &watching.Object[reading]{}, one.found, c.log)
		c.kinds = append(c.kinds, one)
	}
	return c
}

// read returns the schema of a version of a definition.
func read(object *unstructured.Unstructured, version string) reading {
	r := reading{resourceVersion: object.GetResourceVersion()}
	content, err := json.Marshal(object.Object)
	if err != nil {
		r.err = fmt.Errorf("encoding the definition: %w", err)
		return r
	}
	r.schema, r.err = definition.Read(content, version)
	return r
}

// Start follows the definitions until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.follow(ctx)
	}()
	reflectors := make([]*cache.Reflector, len(c.kinds))
	for i, k := range c.kinds {
		reflectors[i] = k.reflector
	}
	watching.Run(ctx, c.log, reflectors...)
	<-done
	return nil
}

// NeedLeaderElection returns false: every replica compiles policies.
func (c *Cache) NeedLeaderElection() bool { return false }

// Await returns when the compiler has the schemas of all definitions that exist, or they could not be read in time.
func (c *Cache) Await(ctx context.Context) {
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case <-c.first:
	case <-ctx.Done():
	case <-timer.C:
		c.log.Info("the definitions of KubeVirt could not be read in time; until they are, policies cannot read fields that this release does not know", "timeout", c.timeout.String())
	}
}

// Changed returns a channel that is closed after the compiler has received other schemas.
func (c *Cache) Changed() <-chan struct{} { return c.changed.Changed() }

// follow uses what is read until ctx ends.
func (c *Cache) follow(ctx context.Context) {
	embedded, err := policyschema.Embedded()
	if err != nil {
		c.log.Error(err, "the schemas of the release cannot be read")
		return
	}
	inUse, first := embedded, true
	for {
		observed := c.observed.Changed()
		if next := c.next(embedded, inUse); next != inUse {
			inUse = next
			c.changed.Send()
		}
		if first && c.synced() {
			first = false
			close(c.first)
		}
		select {
		case <-observed:
		case <-ctx.Done():
			return
		}
	}
}

// synced reports whether all definitions have been read, or do not exist, and used.
func (c *Cache) synced() bool {
	for _, k := range c.kinds {
		if !k.found.Synced() || k.seen == "" {
			return false
		}
	}
	return true
}

// next gives the compiler the schemas of what has been read, kind by kind, and returns the schemas in use.
func (c *Cache) next(embedded, inUse *policyschema.Schemas) *policyschema.Schemas {
	for _, k := range c.kinds {
		if !k.found.Synced() {
			continue
		}
		found, exists := k.found.Get("", k.name)
		if seen := fmt.Sprint(exists, found.resourceVersion); seen == k.seen {
			continue
		} else if k.seen = seen; !exists {
			c.metrics.unusable.WithLabelValues(k.kind).Set(0)
			if k.used != nil {
				c.log.Info("a definition of KubeVirt is gone; policies can still read its fields", "definition", k.name)
			}
			continue
		}
		schemas, added, err := c.using(embedded, k, found)
		if err == nil && schemas.Digest() != inUse.Digest() {
			if err = c.compiler.UseSchemas(schemas); err == nil {
				inUse = schemas
				c.log.Info("policies can read the fields of the installed KubeVirt", "definition", k.name, "added", added)
			}
		}
		if err != nil {
			c.metrics.unusable.WithLabelValues(k.kind).Set(1)
			c.log.Error(err, "a definition of KubeVirt does not define the types of policies; the last good one stays in use", "definition", k.name)
			continue
		}
		k.used = &found.schema
		c.metrics.unusable.WithLabelValues(k.kind).Set(0)
		c.metrics.added.WithLabelValues(k.kind).Set(float64(added))
	}
	return inUse
}

// using returns the embedded schemas with all that are in use and that of one kind as it was found, and the number of the fields that this adds.
func (c *Cache) using(embedded *policyschema.Schemas, changed *kind, found reading) (*policyschema.Schemas, int, error) {
	if found.err != nil {
		return nil, 0, found.err
	}
	result, added := embedded, 0
	for _, k := range c.kinds {
		by := k.used
		if k == changed {
			by = &found.schema
		}
		if by == nil {
			continue
		}
		next, count, err := result.Extended(k.kind, *by)
		if err != nil {
			return nil, 0, err
		}
		if result = next; k == changed {
			added = count
		}
	}
	return result, added, nil
}
