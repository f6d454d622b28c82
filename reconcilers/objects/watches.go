package objects

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/objects"
)

// nonceLength covers the ID of a key and the nonce, in base64.
const nonceLength = 48

// waiting is what is stored of a VirtualMachine. It is empty for one whose objects exist.
type waiting struct {
	UID types.UID
	// Key is the ID of the key of its annotation.
	Key string
	// Nonce is the beginning of the encrypted text, which differs whenever it was encrypted.
	Nonce string
}

func reduce(vm *unstructured.Unstructured) waiting {
	pending := vm.GetAnnotations()[contract.AnnotationPendingObjects]
	if pending == "" || vm.GetDeletionTimestamp() != nil {
		return waiting{}
	}
	return waiting{UID: vm.GetUID(), Key: objects.KeyOf(pending), Nonce: pending[:min(len(pending), nonceLength)]}
}

// wake enqueues VirtualMachines whose objects do not exist yet.
type wake struct {
	vms *watching.Index[*watching.Object[waiting], waiting]

	dynamic dynamic.Interface
	served  discovery.ServerResourcesInterface
	log     logr.Logger

	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newWake(w wake) *wake {
	w.vms = watching.NewIndex(watching.Options[*watching.Object[waiting], waiting]{
		Kind: virtualMachines.Resource,
		Convert: func(object *watching.Object[waiting], _ waiting, _ bool) (waiting, error) {
			return object.Value, nil
		},
		Equal: func(before, after waiting) bool { return before == after },
		Changed: func(update watching.Update[waiting]) {
			for _, each := range update.Changes {
				if each.After.UID != "" {
					w.queue.Add(reconcile.Request{NamespacedName: each.NamespacedName})
				}
			}
		},
	})
	return &w
}

// source starts the watch together with a controller.
func (w *wake) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.queue = queue
		go watching.RunLate(ctx, w.log, w.served,
			watching.Late{
				Name: "objects-" + virtualMachines.Resource, Resource: virtualMachines, Into: w.vms, Failed: w.vms.FailIfNotServed,
				Example: &watching.Object[waiting]{}, Source: watching.Reduced(w.dynamic.Resource(virtualMachines), watching.Selector{}, reduce),
			})
		return nil
	})
}

// keys returns the IDs of the keys that VirtualMachines need, and whether all VirtualMachines are known.
func (w *wake) keys() (inUse map[string]bool, known bool) {
	inUse = map[string]bool{}
	w.vms.Range(func(_ types.NamespacedName, v waiting) bool {
		if v.Key != "" {
			inUse[v.Key] = true
		}
		return true
	})
	return inUse, w.vms.Synced() && w.vms.Problem() == nil
}
