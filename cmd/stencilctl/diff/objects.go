package diff

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// objects reads the other objects of the template that were created for a VirtualMachine: nil for one that does not exist, and
// empty for one that is not compared, for one of the reasons.
func (d *differing) objects(ctx context.Context, vm machine.Object, others []template.MatchedObject) (existing []map[string]any, reasons []string, err error) {
	existing = make([]map[string]any, len(others))
	if _, pending := vm.Annotations[contract.AnnotationPendingObjects]; pending {
		for i := range existing {
			existing[i] = map[string]any{}
		}
		return existing, []string{"the objects of the template, which are not created yet"}, nil
	}
	for i, other := range others {
		object, reason, err := d.object(ctx, vm, other)
		if err != nil {
			return nil, nil, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
			object = map[string]any{}
		}
		existing[i] = object
	}
	return existing, reasons, nil
}

func (d *differing) object(ctx context.Context, vm machine.Object, other template.MatchedObject) (object map[string]any, reason string, err error) {
	if other.Name == "" {
		return nil, fmt.Sprintf("a %s, whose name the VM does not show", other.Kind), nil
	}
	name := other.Kind + " " + other.Name
	resource, err := d.client.ResourceOf(ctx, other.APIVersion, other.Kind)
	if err != nil {
		return nil, "", cluster.Failed("reading the resources of "+other.APIVersion, err)
	}
	if resource.Resource == "" {
		return nil, fmt.Sprintf("%s, because the cluster does not serve the kind in %s", name, other.APIVersion), nil
	}
	object, err = d.client.Get(ctx, resource, machine.StringAt(vm.Metadata, "namespace"), other.Name)
	switch {
	case apierrors.IsForbidden(err):
		return nil, name + ", which you may not get", nil
	case err != nil:
		return nil, "", cluster.Failed("reading "+name, err)
	case object != nil && machine.StringAt(machine.MapAt(object, "metadata", "labels"), contract.LabelObjectOwner) != machine.StringAt(vm.Metadata, "uid"):
		return nil, name + ", which was not created for this VM", nil
	}
	return object, "", nil
}

// objectAt returns the kind and the name of the object of which a path is a part; empty for the VirtualMachine.
func objectAt(path string, others []template.MatchedObject) string {
	for i, other := range others {
		if at := fmt.Sprintf("objects[%d]", i); path == at || strings.HasPrefix(path, at+".") {
			return strings.TrimSpace(other.Kind + " " + other.Name)
		}
	}
	return ""
}
