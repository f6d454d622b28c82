package exemptions

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/exemption"
)

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Names are the configured names.
	Names exemption.Names
	// Binding is the name of the ClusterRoleBinding. If empty, no service account of KubeVirt or CDI is exempt.
	Binding string
}

// Cache stores which users are exempt. It runs until the context of Start ends, on every replica. All methods are safe for
// concurrent use. Until it is synced only the users of Kubernetes and Stencil are exempt.
type Cache struct {
	names     exemption.Names
	log       logr.Logger
	reflector *cache.Reflector
	// bound are the subjects of the binding that the names permit; nil until it has been read.
	bound atomic.Pointer[[]exemption.Account]
}

// New returns a Cache that has not started. It fails when no client can be made of the configuration.
func New(o Options) (*Cache, error) {
	c := &Cache{names: o.Names, log: o.Logger}
	if o.Binding == "" {
		c.bound.Store(&[]exemption.Account{})
		return c, nil
	}
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client of ClusterRoleBindings: %w", err)
	}
	source := cache.NewListWatchFromClient(client.RbacV1().RESTClient(), "clusterrolebindings", "", fields.OneTermEqualSelector("metadata.name", o.Binding))
	c.reflector = watching.Reflector("exemptions", source, &rbacv1.ClusterRoleBinding{}, store{c}, c.log)
	return c, nil
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	if c.reflector == nil {
		<-ctx.Done()
		return nil
	}
	watching.Run(ctx, c.log, c.reflector)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the binding has been read, or does not exist.
func (c *Cache) Synced() bool { return c.bound.Load() != nil }

// Exempt reports whether a user is exempt from approvals.
func (c *Cache) Exempt(user string) bool {
	if c.names.Users().Exempt(user) {
		return true
	}
	account, is := exemption.ParseAccount(user)
	bound := c.bound.Load()
	return is && bound != nil && slices.Contains(*bound, account)
}

// ExemptIn reports whether service accounts of a namespace are exempt.
func (c *Cache) ExemptIn(namespace string) bool {
	if c.names.Users().ExemptIn(namespace) {
		return true
	}
	bound := c.bound.Load()
	return bound != nil && slices.ContainsFunc(*bound, func(a exemption.Account) bool { return a.Namespace == namespace })
}

// store stores the objects of the reflector.
type store struct{ cache *Cache }

var _ cache.ReflectorStore = store{}

func (s store) set(objects []any) error {
	accounts := []exemption.Account{}
	for _, object := range objects {
		binding, ok := object.(*rbacv1.ClusterRoleBinding)
		if !ok {
			return fmt.Errorf("the cache of exempt users was given a %T", object)
		}
		for _, subject := range binding.Subjects {
			account := exemption.Account{Namespace: subject.Namespace, Name: subject.Name}
			if subject.Kind == rbacv1.ServiceAccountKind && s.cache.names.Account(account) {
				accounts = append(accounts, account)
			}
		}
	}
	s.cache.bound.Store(&accounts)
	return nil
}

// Add implements cache.ReflectorStore.
func (s store) Add(object any) error { return s.set([]any{object}) }

// Update implements cache.ReflectorStore.
func (s store) Update(object any) error { return s.set([]any{object}) }

// Delete implements cache.ReflectorStore.
func (s store) Delete(any) error { return s.set(nil) }

// Replace implements cache.ReflectorStore: the first list, and each one after a watch was lost.
func (s store) Replace(objects []any, _ string) error { return s.set(objects) }

// Resync implements cache.ReflectorStore.
func (s store) Resync() error { return nil }
