package objectkeys

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	"github.com/vmstencil/stencil/internal/objects"
)

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Secret holds the keys.
	Secret types.NamespacedName
}

// Cache stores the keys. It runs until the context of Start ends, on every replica. All methods are safe for concurrent use.
type Cache struct {
	options   Options
	reflector *cache.Reflector
	secrets   *watching.Index[*corev1.Secret, objects.Keys]
	changed   await.Signal
}

// New returns a Cache that has not started. It fails when no client can be made of the configuration.
func New(o Options) (*Cache, error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the keys of objects: %w", err)
	}
	c := &Cache{options: o}
	c.secrets = watching.NewIndex(watching.Options[*corev1.Secret, objects.Keys]{
		Kind: "Secrets",
		Convert: func(secret *corev1.Secret, _ objects.Keys, _ bool) (objects.Keys, error) {
			return secret.Data, nil
		},
		Changed: func(watching.Update[objects.Keys]) { c.changed.Send() },
	})
	// list and watch of one name are what the manager is permitted.
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "secrets", o.Secret.Namespace, fields.OneTermEqualSelector("metadata.name", o.Secret.Name))
	c.reflector = watching.Reflector("object-keys", source, &corev1.Secret{}, c.secrets, o.Logger)
	return c, nil
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	watching.Run(ctx, c.options.Logger, c.reflector)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the Secret has been read, or does not exist.
func (c *Cache) Synced() bool { return c.secrets.Synced() }

// Keys returns the keys; none if the Secret does not exist. They must not be modified.
func (c *Cache) Keys() objects.Keys {
	keys, _ := c.secrets.Get(c.options.Secret.Namespace, c.options.Secret.Name)
	return keys
}

// Changed returns a channel that is closed by the next change.
func (c *Cache) Changed() <-chan struct{} { return c.changed.Changed() }
