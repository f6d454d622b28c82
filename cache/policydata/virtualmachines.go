package policydata

import (
	"context"
	"fmt"
	"sync"
	"weak"

	"github.com/go-logr/logr"
	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// Sizes has the sizes of instance types; an instancetypes.Cache implements it.
type Sizes interface {
	// Synced reports whether the instance types have been read.
	Synced() bool
	// Written returns a channel that is closed by the next change of an instance type or a revision of one, and by the first list of each.
	Written() <-chan struct{}
	// Size returns the size that a reference stands for, without waiting.
	Size(sizing.Reference) (sizing.Size, error)
}

var virtualMachinesResource = kubevirtv1.SchemeGroupVersion.WithResource("virtualmachines")

// virtualMachines is a watch cache of VirtualMachines. It reads them once a policy needs them.
type virtualMachines struct {
	source cache.ListerWatcher
	served discovery.ServerResourcesInterface
	sizes  Sizes
	index  *watching.Index[*watching.Object[vm], vm]
	needed needed

	mutex sync.Mutex
	// versions change with the VirtualMachines of a namespace, by namespace.
	versions map[string]uint64
	// bySelector are the counts that a policy reads, by the text of their selector.
	bySelector map[string]weak.Pointer[counts]
}

// newVirtualMachines returns a cache that calls synced when the first list has arrived.
func newVirtualMachines(source cache.ListerWatcher, served discovery.ServerResourcesInterface, sizes Sizes, synced func()) *virtualMachines {
	v := &virtualMachines{
		source: source, served: served, sizes: sizes, needed: newNeeded(),
		versions: map[string]uint64{}, bySelector: map[string]weak.Pointer[counts]{},
	}
	v.index = watching.NewIndex(watching.Options[*watching.Object[vm], vm]{
		Kind:    "VirtualMachines",
		Convert: func(object *watching.Object[vm], _ vm, _ bool) (vm, error) { return object.Value, nil },
		Equal:   vm.equal,
		Changed: func(update watching.Update[vm]) {
			v.mutex.Lock()
			for i := range update.Changes {
				v.versions[update.Changes[i].Namespace]++
			}
			v.mutex.Unlock()
			if update.First || update.Failed {
				synced()
			}
		},
	})
	return v
}

// run fills and updates the cache once it is needed, until ctx ends. Sizes of instance types are read first.
func (v *virtualMachines) run(ctx context.Context, log logr.Logger) {
	if !v.needed.wait(ctx) {
		return
	}
	for {
		written := v.sizes.Written()
		if v.sizes.Synced() {
			break
		}
		select {
		case <-written:
		case <-ctx.Done():
			return
		}
	}
	watching.RunLate(ctx, log, v.served, watching.Late{
		Name: "policydata/virtualmachines", Resource: virtualMachinesResource, Source: v.source, Example: &watching.Object[vm]{}, Into: v.index,
		Failed: v.index.FailIfNotServed,
	})
}

func (v *virtualMachines) version(namespace string) uint64 {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.versions[namespace]
}

// counts returns the source of the numbers of the VirtualMachines that a selector selects. It is the same one as long as a policy reads it.
func (v *virtualMachines) counts(of *rego.VirtualMachines) (*counts, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if known := v.bySelector[of.Selector].Value(); known != nil {
		return known, nil
	}
	selector, err := kubelabels.Parse(of.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of VirtualMachines: %w", err)
	}
	made := &counts{of: v, selector: selector, tallies: map[string]*tally{}}
	v.bySelector[of.Selector] = weak.Make(made)
	return made, nil
}

// needed is a need that arises at some time.
type needed struct {
	once  *sync.Once
	since chan struct{}
}

func newNeeded() needed { return needed{&sync.Once{}, make(chan struct{})} }

func (n needed) send() { n.once.Do(func() { close(n.since) }) }

// wait returns when there is a need, and false if ctx ends first.
func (n needed) wait(ctx context.Context) bool {
	select {
	case <-n.since:
		return true
	case <-ctx.Done():
		return false
	}
}
