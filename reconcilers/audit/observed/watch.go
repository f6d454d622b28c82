package observed

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cache/watching"
)

// launcherPods selects the pods that run VMs, and those that attach volumes to them.
const launcherPods = kubevirtv1.AppLabel + " in (virt-launcher, hotplug-disk)"

// Watch watches all four kinds. It runs until the context of Start ends. All methods are safe for concurrent use.
type Watch struct {
	changes                      *changes
	clones                       *clones
	vms, instances, claims, pods *index
	late                         []watching.Late
	served                       discovery.ServerResourcesInterface
	log                          logr.Logger
}

// New returns a Watch that has not started. It fails when no client can be made of the configuration.
func New(config *rest.Config, log logr.Logger) (*Watch, error) {
	config = rest.CopyConfig(config)
	// No client-side limit: there are four lists and watches, and the API server has limits of its own.
	config.QPS = -1
	client, err1 := dynamic.NewForConfig(config)
	served, err2 := discovery.NewDiscoveryClientForConfig(config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("making the clients of the watches of what runs: %w", err)
	}
	w := newWatch()
	w.served, w.log = served, log
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		selector string
		into     *index
		reduce   reducer
	}{
		{kubevirtv1.SchemeGroupVersion.WithResource("virtualmachines"), "", w.vms, reduceVM},
		{kubevirtv1.SchemeGroupVersion.WithResource("virtualmachineinstances"), "", w.instances, reduceInstance},
		{corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "", w.claims, reduceClaim},
		{corev1.SchemeGroupVersion.WithResource("pods"), launcherPods, w.pods, reducePod},
	} {
		w.late = append(w.late, watching.Late{
			Name: "audit-" + kind.resource.Resource, Resource: kind.resource, Into: kind.into, Failed: kind.into.FailIfNotServed,
			Example: &watching.Object[Object]{},
			Source:  watching.Reduced(client.Resource(kind.resource), watching.Selector{Labels: kind.selector}, kind.reduce.reduced),
		})
	}
	return w, nil
}

func newWatch() *Watch {
	c, counted := newChanges(), &clones{numbers: map[string]int{}}
	return &Watch{
		changes: c, clones: counted, vms: newIndex("VirtualMachines", c, counted.update), instances: newIndex("VirtualMachineInstances", c),
		claims: newIndex("PersistentVolumeClaims", c), pods: newIndex("Pods", c),
	}
}

// Start watches until ctx ends. The manager calls it on the leader.
func (w *Watch) Start(ctx context.Context) error {
	watching.RunLate(ctx, w.log, w.served, w.late...)
	return nil
}

// Synced reports whether the objects of each kind have been listed, or the API server does not serve the kind.
func (w *Watch) Synced() bool {
	return w.vms.Synced() && w.instances.Synced() && w.claims.Synced() && w.pods.Synced()
}

// Changed returns a channel that is closed when a namespace is added to those that Take returns.
func (w *Watch) Changed() <-chan struct{} { return w.changes.changed.Changed() }

// Take returns the namespaces, sorted, in which something changed since the last call.
func (w *Watch) Take() []string { return w.changes.take() }

// VMs returns the VirtualMachines of a namespace.
func (w *Watch) VMs(namespace string) []Object { return w.vms.In(namespace) }

// Instances returns the VirtualMachineInstances of a namespace.
func (w *Watch) Instances(namespace string) []Object { return w.instances.In(namespace) }

// Pods returns the pods of a namespace that run VMs or attach volumes to them.
func (w *Watch) Pods(namespace string) []Object { return w.pods.In(namespace) }
