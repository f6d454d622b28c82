// Package watching contains what the watch caches share: sources of objects, reflectors with their backoff, and the index that a
// reflector fills.
package watching

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Resource lists and watches all objects of a resource, such as templateapprovals, decoded into the types that register adds to a
// scheme. It fails when no client can be made of the configuration.
func Resource(config *rest.Config, version schema.GroupVersion, register func(*runtime.Scheme) error, resource string) (cache.ListerWatcher, error) {
	scheme := runtime.NewScheme()
	if err := register(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return cache.NewListWatchFromClient(client, resource, "", fields.Everything()), nil
}

// Reflector puts the objects of a source, which are like example, into a store. The name is for logs.
func Reflector(name string, source cache.ListerWatcher, example runtime.Object, into cache.ReflectorStore, log logr.Logger) *cache.Reflector {
	return cache.NewReflectorWithOptions(source, example, into, cache.ReflectorOptions{
		Name:   name,
		Logger: &log,
		// The definition may be installed after Stencil: retry quickly; the default would wait up to half a minute.
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 10, Cap: 5 * time.Second},
	})
}

// Run runs reflectors until ctx ends and all of them have.
func Run(ctx context.Context, log logr.Logger, reflectors ...*cache.Reflector) {
	ctx = logr.NewContext(ctx, log)
	var running sync.WaitGroup
	for _, reflector := range reflectors {
		running.Go(func() { reflector.RunWithContext(ctx) })
	}
	running.Wait()
}
