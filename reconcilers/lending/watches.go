package lending

import (
	"context"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	diskcache "github.com/vmstencil/stencil/cache/disks"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// borrower is what is stored of a VirtualMachine. It is empty for one whose disks are not copied from another namespace, or that has no
// template.
type borrower struct {
	UID        types.UID
	Generation int64
	// Template of the record.
	Template types.NamespacedName
	// Disks are the names of its DataVolumes, separated by spaces: the type must be comparable.
	Disks string
	// Failed is set while KubeVirt reports that it could not create something for the VirtualMachine.
	Failed bool
}

func (b borrower) names() []string { return strings.Fields(b.Disks) }

func reduce(vm *unstructured.Unstructured) borrower {
	object, _ := machine.Read(vm.Object)
	record := recorded(object, vm.GetNamespace())
	if record.Name == "" || vm.GetDeletionTimestamp() != nil || !disks.Foreign(object.Spec, vm.GetNamespace()) {
		return borrower{}
	}
	b := borrower{
		UID: vm.GetUID(), Generation: vm.GetGeneration(), Template: types.NamespacedName{Namespace: record.Namespace, Name: record.Name},
		Failed: failure(vm.Object) != "",
	}
	for _, each := range disks.Templates(object.Spec) {
		b.Disks += " " + each.Name
	}
	return b
}

// recorded returns the record of a VirtualMachine, or the zero value if it names another template than the reference. The policy template-use
// requires permission for the template of the reference; the record could be forged while the render webhook is not registered.
func recorded(object machine.Object, namespace string) machine.Record {
	record := object.Record()
	text, _ := object.Reference()
	reference, errs := machine.ParseReference(text, namespace)
	if len(errs) > 0 || reference.Namespace != record.Namespace || reference.Name != record.Name {
		return machine.Record{}
	}
	return record
}

// failure returns the message of the condition by which KubeVirt reports that it could not create something for a VirtualMachine.
func failure(vm map[string]any) string {
	for _, condition := range machine.MapsAt(machine.MapAt(vm, "status"), "conditions") {
		if machine.StringAt(condition, "type") == "Failure" && machine.StringAt(condition, "status") == "True" {
			return machine.StringAt(condition, "message")
		}
	}
	return ""
}

// wake enqueues VirtualMachines that may lack a disk that their template lends.
type wake struct {
	vms       *watching.Index[*watching.Object[borrower], borrower]
	disks     *diskcache.Cache
	templates *templatecache.Cache

	dynamic dynamic.Interface
	served  discovery.ServerResourcesInterface
	log     logr.Logger

	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// lenders are the versions of the templates that lend disks.
	lenders map[types.NamespacedName]lender
	// changed passes the names of templates and of deleted DataVolumes on, whose callbacks must not read an index.
	changed workqueue.TypedInterface[change]
}

// lender identifies a version of a template that lends disks.
type lender struct {
	uid        types.UID
	generation int64
}

// lent reports whether a template lends disks and did not before in this version: statuses of templates are written often. The cache of templates
// calls it with its lock held.
func (w *wake) lent(name types.NamespacedName, t *templatecache.Template) bool {
	if t == nil || !(disks.Lender{Labels: t.Labels()}).Lends() {
		delete(w.lenders, name)
		return false
	}
	before, now := w.lenders[name], lender{t.UID, t.Generation}
	w.lenders[name] = now
	return before != now
}

// change is a template that changed, or a DataVolume that was deleted.
type change struct {
	template, dataVolume types.NamespacedName
}

func newWake(w wake) *wake {
	w.changed, w.lenders = workqueue.NewTyped[change](), map[types.NamespacedName]lender{}
	w.vms = watching.NewIndex(watching.Options[*watching.Object[borrower], borrower]{
		Kind: virtualMachines.Resource,
		Convert: func(object *watching.Object[borrower], _ borrower, _ bool) (borrower, error) {
			return object.Value, nil
		},
		Equal: func(before, after borrower) bool { return before == after },
		Changed: func(update watching.Update[borrower]) {
			for _, each := range update.Changes {
				if each.After.UID != "" {
					w.queue.Add(reconcile.Request{NamespacedName: each.NamespacedName})
				}
			}
		},
	})
	return &w
}

// source starts the watches together with a controller.
func (w *wake) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.queue = queue
		w.disks.Listen(func(deleted types.NamespacedName) { w.changed.Add(change{dataVolume: deleted}) })
		w.templates.Listen(func(name types.NamespacedName, t *templatecache.Template) {
			if w.lent(name, t) {
				w.changed.Add(change{template: name})
			}
		})
		go watching.RunLate(ctx, w.log, w.served,
			watching.Late{
				Name: "lending-" + virtualMachines.Resource, Resource: virtualMachines, Into: w.vms, Failed: w.vms.FailIfNotServed,
				Example: &watching.Object[borrower]{}, Source: watching.Reduced(w.dynamic.Resource(virtualMachines), watching.Selector{}, reduce),
			})
		single.Drain(ctx, w.changed, w.pass)
		return nil
	})
}

// pass enqueues the VirtualMachines that a change affects.
func (w *wake) pass(one change) {
	w.vms.Range(func(name types.NamespacedName, b borrower) bool {
		if b.UID != "" && (b.Template == one.template && !w.complete(name.Namespace, b) ||
			name.Namespace == one.dataVolume.Namespace && slices.Contains(b.names(), one.dataVolume.Name)) {
			w.queue.Add(reconcile.Request{NamespacedName: name})
		}
		return true
	})
}

// needs reports whether a DataVolume of a VirtualMachine does not exist, as far as the watches have received.
func (w *wake) needs(vm types.NamespacedName) bool {
	b, _ := w.vms.Get(vm.Namespace, vm.Name)
	return b.UID != "" && !w.complete(vm.Namespace, b)
}

func (w *wake) complete(namespace string, b borrower) bool {
	return !slices.ContainsFunc(b.names(), func(name string) bool {
		return !w.disks.DataVolume(namespace, name)
	})
}
