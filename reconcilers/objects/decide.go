package objects

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/objects"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// state is the input of decide.
type state struct {
	// vm is the stored VirtualMachine; nil if there is none.
	vm   *unstructured.Unstructured
	keys objects.Keys
}

func (s *state) name() types.NamespacedName {
	return types.NamespacedName{Namespace: s.vm.GetNamespace(), Name: s.vm.GetName()}
}

// pending returns the annotation with the encrypted objects.
func (s *state) pending() string { return s.vm.GetAnnotations()[contract.AnnotationPendingObjects] }

// binding returns what the annotation belongs to.
func (s *state) binding() objects.Binding {
	return objects.Binding{
		Namespace: s.vm.GetNamespace(), Name: s.vm.GetName(), Record: s.vm.GetAnnotations()[contract.AnnotationRendered],
		Requester: objects.RequesterOf(s.pending()),
	}
}

// misplaced returns why the pending objects are not those of the VirtualMachine; empty if they are. A user can send the annotation of another request, which
// only a VirtualMachine without a reference keeps. An annotation of a release that wrote no requester is valid for minutes after the upgrade.
func (s *state) misplaced() string {
	switch {
	case objects.IsDryRun(s.pending()):
		return "the annotation was written in a dry run"
	case objects.RequesterOf(s.pending()) == "":
		return ""
	}
	vm, errs := machine.Read(s.vm.Object)
	if len(errs) > 0 {
		return "the metadata of the VirtualMachine cannot be read"
	}
	text, found := vm.Reference()
	ref, errs := machine.ParseReference(text, s.vm.GetNamespace())
	if from := vm.Record(); !found || len(errs) > 0 || ref.Namespace != from.Namespace || ref.Name != from.Name {
		return "the VirtualMachine does not refer to the template for which the annotation was written"
	}
	return ""
}

// plan is the result of decide.
type plan struct {
	pending objects.Pending
	// create are the manifests of the pending objects, in the same order.
	create []object
	// problem is why no object can be created; empty if there is none.
	problem string
}

type object struct {
	resource schema.GroupVersionResource
	manifest *unstructured.Unstructured
}

// name returns kind and name for messages.
func (o object) name() string { return o.manifest.GetKind() + " " + o.manifest.GetName() }

// decide returns the objects that a VirtualMachine lacks.
func decide(s *state) (p plan) {
	if s.vm == nil || s.vm.GetDeletionTimestamp() != nil || s.pending() == "" {
		return p
	}
	pending, err := objects.Open(s.keys, s.binding(), s.pending(), s.vm.GetCreationTimestamp().Time)
	if err != nil {
		p.problem = err.Error()
		return p
	}
	if p.problem = s.misplaced(); p.problem != "" {
		return p
	}
	p.pending = pending
	for _, each := range pending.Objects {
		manifest := &unstructured.Unstructured{}
		if err := json.Unmarshal(each.Manifest, &manifest.Object); err != nil {
			return plan{problem: "an object cannot be decoded"}
		}
		p.create = append(p.create, object{schema.GroupVersionResource{Group: each.Group, Version: each.Version, Resource: each.Resource}, s.owned(manifest)})
	}
	return p
}

// owned makes an object one of the VirtualMachine.
func (s *state) owned(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	labels := manifest.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[contract.LabelObjectOwner] = string(s.vm.GetUID())
	manifest.SetLabels(labels)
	manifest.SetNamespace(s.vm.GetNamespace())
	controller, blocks := true, false
	manifest.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: virtualMachines.GroupVersion().String(), Kind: kindVM, Name: s.vm.GetName(), UID: s.vm.GetUID(),
		// Blocking the deletion of the owner requires permission to update its finalizers.
		Controller: &controller, BlockOwnerDeletion: &blocks,
	}})
	return manifest
}

// own reports whether an object was created for the VirtualMachine.
func (s *state) own(found metav1.Object) bool {
	owner := metav1.GetControllerOf(found)
	return owner != nil && owner.UID == s.vm.GetUID() && found.GetLabels()[contract.LabelObjectOwner] == string(s.vm.GetUID())
}

// operation is one of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

const (
	pendingAt     = "/metadata/annotations/objects.template.kubevirt.io~1pending"
	annotationsAt = "/spec/template/metadata/annotations"
	holdAt        = annotationsAt + "/objects.template.kubevirt.io~1hold"
)

// finished returns the patch of the VirtualMachine when all of its objects exist. It fails if another VirtualMachine has taken the place of this
// one, or the annotation has changed.
func (s *state) finished() []operation {
	patch := append(s.unchanged(), operation{Op: "remove", Path: pendingAt})
	annotations := machine.MapAt(s.vm.Object, "spec", "template", "metadata", "annotations")
	switch {
	case annotations[contract.AnnotationHold] == nil:
	case len(annotations) == 1:
		patch = append(patch, operation{Op: "remove", Path: annotationsAt})
	default:
		patch = append(patch, operation{Op: "remove", Path: holdAt})
	}
	return patch
}

// progressed returns the patch of the VirtualMachine when some of its objects exist: only the others remain pending.
func (s *state) progressed(left objects.Pending) ([]operation, error) {
	text, err := left.Seal(s.keys, s.binding())
	if err != nil {
		return nil, fmt.Errorf("encrypting the objects that are left: %w", err)
	}
	return append(s.unchanged(), operation{Op: "replace", Path: pendingAt, Value: text}), nil
}

func (s *state) unchanged() []operation {
	return []operation{
		{Op: "test", Path: "/metadata/uid", Value: string(s.vm.GetUID())},
		{Op: "test", Path: pendingAt, Value: s.pending()},
	}
}

// rotation is the input of renew.
type rotation struct {
	keys objects.Keys
	// inUse are the keys that encrypted the objects of VirtualMachines. If known is false, they are not known yet.
	inUse map[string]bool
	known bool
}

// renew returns the keys after rotation, and whether they changed.
func (r rotation) renew(now time.Time) (objects.Keys, bool) {
	return r.keys.Renewed(now, func(id string) bool { return !r.known || r.inUse[id] })
}
