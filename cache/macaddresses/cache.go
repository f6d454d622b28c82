package macaddresses

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cache/watching"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
}

// Cache stores the addresses of VMs and the selector of the MAC pool manager. It runs until the context of Start ends, on
// every replica. All methods are safe for concurrent use.
type Cache struct {
	// vms holds the addresses of each VM, holders by which VMs each address is held.
	vms     *watching.Index[*watching.Object[[]string], []string]
	holders *holders
	pool    pool
	client  dynamic.Interface
	served  discovery.ServerResourcesInterface
	log     logr.Logger
}

// New returns a Cache that has not started. It fails when no client can be made of the
// configuration.
func New(o Options) (*Cache, error) {
	client, err1 := dynamic.NewForConfig(o.Config)
	served, err2 := discovery.NewDiscoveryClientForConfig(o.Config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("making the clients of MAC addresses: %w", err)
	}
	c := newCache()
	c.client, c.served, c.log = client, served, o.Logger
	return c, nil
}

func newCache() *Cache {
	c := &Cache{holders: newHolders(), pool: newPool()}
	c.vms = watching.NewIndex(watching.Options[*watching.Object[[]string], []string]{
		Kind:    "VirtualMachines",
		Convert: func(vm *watching.Object[[]string], _ []string, _ bool) ([]string, error) { return vm.Value, nil },
		Equal:   slices.Equal[[]string],
		Changed: func(update watching.Update[[]string]) {
			for _, each := range update.Changes {
				c.holders.change(each.NamespacedName, each.Before, each.After)
			}
		},
	})
	return c
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	vms := kubevirtv1.SchemeGroupVersion.WithResource("virtualmachines")
	watching.RunLate(ctx, c.log, c.served,
		watching.Late{
			Name: "macaddresses", Resource: vms, Source: watching.Reduced(c.client.Resource(vms), watching.Selector{}, addresses),
			Example: &watching.Object[[]string]{}, Into: c.vms, Failed: c.vms.FailIfNotServed,
		},
		watching.Late{
			Name: "macaddresses/pool", Resource: configurations, Source: watching.Source(c.client.Resource(configurations), poolSelector),
			Example: &unstructured.Unstructured{}, Into: c.pool.configurations,
		})
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first lists have arrived, or the kind VirtualMachine is not served.
func (c *Cache) Synced() bool { return c.vms.Synced() && c.pool.configurations.Synced() }

// Taken reports whether another VirtualMachine of the namespace has the address.
func (c *Cache) Taken(namespace, name, address string) bool {
	return c.holders.taken(types.NamespacedName{Namespace: namespace, Name: name}, address)
}

// Pooled reports whether a MAC pool manager assigns addresses to the VirtualMachines of a namespace with these labels.
func (c *Cache) Pooled(labels map[string]string) bool { return c.pool.covers(labels) }

// addresses returns the addresses in the spec of a VM.
func addresses(vm *unstructured.Unstructured) (found []string) {
	for _, nic := range machine.MapsAt(machine.MapAt(vm.Object, "spec", "template", "spec", "domain", "devices"), "interfaces") {
		if address := machine.StringAt(nic, "macAddress"); address != "" {
			found = append(found, normal(address))
		}
	}
	return found
}
