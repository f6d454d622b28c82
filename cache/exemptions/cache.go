package exemptions

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
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
	// bindings holds the binding: those of its subjects that the names permit.
	bindings *watching.Index[*rbacv1.ClusterRoleBinding, []exemption.Account]
}

// New returns a Cache that has not started. It fails when no client can be made of the configuration.
func New(o Options) (*Cache, error) {
	c := newCache(o)
	if o.Binding == "" {
		_ = c.bindings.Replace(nil, "") // An empty list cannot fail.
		return c, nil
	}
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client of ClusterRoleBindings: %w", err)
	}
	source := cache.NewListWatchFromClient(client.RbacV1().RESTClient(), "clusterrolebindings", "", fields.OneTermEqualSelector("metadata.name", o.Binding))
	c.reflector = watching.Reflector("exemptions", source, &rbacv1.ClusterRoleBinding{}, c.bindings, c.log)
	return c, nil
}

func newCache(o Options) *Cache {
	return &Cache{names: o.Names, log: o.Logger, bindings: watching.NewIndex(watching.Options[*rbacv1.ClusterRoleBinding, []exemption.Account]{
		Kind: "ClusterRoleBindings",
		Convert: func(binding *rbacv1.ClusterRoleBinding, _ []exemption.Account, _ bool) (accounts []exemption.Account, err error) {
			for _, subject := range binding.Subjects {
				account := exemption.Account{Namespace: subject.Namespace, Name: subject.Name}
				if subject.Kind == rbacv1.ServiceAccountKind && o.Names.Account(account) {
					accounts = append(accounts, account)
				}
			}
			return accounts, nil
		},
	})}
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
func (c *Cache) Synced() bool { return c.bindings.Synced() }

// Exempt reports whether a user is exempt from approvals.
func (c *Cache) Exempt(user string) bool {
	if c.names.Users().Exempt(user) {
		return true
	}
	account, is := exemption.ParseAccount(user)
	return is && c.bound(func(a exemption.Account) bool { return a == account })
}

// ExemptIn reports whether service accounts of a namespace are exempt.
func (c *Cache) ExemptIn(namespace string) bool {
	return c.names.Users().ExemptIn(namespace) || c.bound(func(a exemption.Account) bool { return a.Namespace == namespace })
}

// bound reports whether the binding has such a subject.
func (c *Cache) bound(is func(exemption.Account) bool) (found bool) {
	c.bindings.Range(func(_ types.NamespacedName, accounts []exemption.Account) bool {
		found = slices.ContainsFunc(accounts, is)
		return !found
	})
	return found
}
