package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/internal/excerpt"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// controllers are API groups of controllers that may own VirtualMachines and put finalizers on them, beside KubeVirt's.
type controllers []string

// owns reports whether the controllers of an API group may own VirtualMachines.
func (c controllers) owns(group string) bool {
	return group == "kubevirt.io" || strings.HasSuffix(group, ".kubevirt.io") || slices.Contains(c, group)
}

// builtinFinalizers of Kubernetes, and one of KubeVirt that has no group.
var builtinFinalizers = []string{"foregroundDeletion", "orphan", "foregroundDeleteVirtualMachine"}

// foreign returns the owners and finalizers in the metadata of an object that belong to none of these controllers.
func (c controllers) foreign(metadata map[string]any) []string {
	var problems []string
	owners, _ := metadata["ownerReferences"].([]any)
	for _, each := range owners {
		owner, _ := each.(map[string]any)
		group, _, versioned := strings.Cut(machine.StringAt(owner, "apiVersion"), "/")
		if !versioned {
			group = ""
		}
		if !c.owns(group) {
			problems = append(problems, fmt.Sprintf("owner %s %s", machine.StringAt(owner, "kind"), machine.StringAt(owner, "name")))
		}
	}
	finalizers, _ := metadata["finalizers"].([]any)
	for _, each := range finalizers {
		name, _ := each.(string)
		group, _, _ := strings.Cut(name, "/")
		if !slices.Contains(builtinFinalizers, name) && !c.owns(group) {
			problems = append(problems, "finalizer "+name)
		}
	}
	return problems
}

// ownership returns the cause if owners or finalizers of a VM are not approved, nil otherwise.
func (c controllers) ownership(object map[string]any, approval string) *cause {
	metadata, _ := object["metadata"].(map[string]any)
	if problems := c.foreign(metadata); len(problems) > 0 {
		return newCause(ruleForeignOwner, approval, "it has %s, which belongs to no controller of virtual machines", excerpt.List(problems, maximumPaths, "owners and finalizers"))
	}
	return nil
}

// sizeReference returns the cause if the status of a VM names another size than its spec, nil otherwise. KubeVirt takes the size of an
// instance type from the ControllerRevision that the status names.
func sizeReference(ctx context.Context, sizes sizing.Resolver, object map[string]any, namespace, approval string) *cause {
	for _, each := range []struct {
		key   string
		refer func(map[string]any, string) (*sizing.Reference, *field.Error)
	}{{"instancetypeRef", sizing.Instancetype}, {"preferenceRef", sizing.Preference}} {
		key := each.key
		reference, invalid := each.refer(object, namespace)
		if invalid != nil || reference == nil || !reference.Loose {
			continue
		}
		// Resolve the revision as if the spec named it, so that it is not ignored if it belongs to another object.
		strict := *reference
		strict.Loose = false
		named, err := sizes.Resolve(ctx, strict)
		if err != nil {
			return newCause(ruleSizeDifferent, approval, "its status.%s.controllerRevisionRef names ControllerRevision %s, of which no size is known: %v", key, reference.Revision, err)
		}
		if of := machine.StringAt(machine.MapAt(named, "metadata"), "name"); of != reference.Name {
			return newCause(ruleSizeDifferent, approval, "its status.%s.controllerRevisionRef names ControllerRevision %s, which is of %q and not of %q", key, reference.Revision, of, reference.Name)
		}
	}
	return nil
}
