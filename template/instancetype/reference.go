package instancetype

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	instancetypeapi "kubevirt.io/api/instancetype"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Kinds of the objects that determine the size and the devices of a VirtualMachine.
const (
	KindInstancetype        = "VirtualMachineInstancetype"
	KindClusterInstancetype = "VirtualMachineClusterInstancetype"
	KindPreference          = "VirtualMachinePreference"
	KindClusterPreference   = "VirtualMachineClusterPreference"
)

// Resources are the resources of these kinds.
var Resources = map[string]schema.GroupVersionResource{
	KindInstancetype:        instancetypev1beta1.SchemeGroupVersion.WithResource(instancetypeapi.PluralResourceName),
	KindClusterInstancetype: instancetypev1beta1.SchemeGroupVersion.WithResource(instancetypeapi.ClusterPluralResourceName),
	KindPreference:          instancetypev1beta1.SchemeGroupVersion.WithResource(instancetypeapi.PluralPreferenceResourceName),
	KindClusterPreference:   instancetypev1beta1.SchemeGroupVersion.WithResource(instancetypeapi.ClusterPluralPreferenceResourceName),
}

// Reference is a reference of a VirtualMachine to an instance type or a preference.
type Reference struct {
	// Path is the field with the reference: spec.instancetype or spec.preference.
	Path *field.Path
	// Kind is one of the Kind constants.
	Kind string
	// Namespace is the namespace of the VirtualMachine.
	Namespace string
	Name      string
	// Revision is the ControllerRevision, in Namespace, that holds the content which the VirtualMachine uses; if empty, the
	// content of the object itself.
	Revision string
	// Loose is true if Revision comes from the status. Such a revision is used only if it belongs to an object called Name;
	// KubeVirt checks this as well.
	Loose bool
}

// Namespaced reports whether the object is in the namespace of the VirtualMachine.
func (r Reference) Namespaced() bool { return r.Kind == KindInstancetype || r.Kind == KindPreference }

// String returns a description of the referenced object.
func (r Reference) String() string {
	if r.Revision != "" && !r.Loose {
		return fmt.Sprintf("ControllerRevision %s/%s", r.Namespace, r.Revision)
	}
	if r.Namespaced() {
		return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name)
	}
	return fmt.Sprintf("%s %s", r.Kind, r.Name)
}

// Resolver finds instance types and preferences.
type Resolver interface {
	// Resolve returns the object that a reference refers to: an object with kind, metadata (name, labels, annotations) and
	// spec, which must not be modified. The error is a message for users why it cannot be resolved.
	Resolve(ctx context.Context, reference Reference) (map[string]any, error)
}

// Instancetype returns the reference of a VirtualMachine to its instance type, nil if there is none; namespace is that of
// the request.
func Instancetype(object map[string]any, namespace string) (*Reference, *field.Error) {
	return reference(object, namespace, "instancetype", KindInstancetype, KindClusterInstancetype)
}

// Preference returns the reference to the preference, as Instancetype does.
func Preference(object map[string]any, namespace string) (*Reference, *field.Error) {
	return reference(object, namespace, "preference", KindPreference, KindClusterPreference)
}

// reference reads spec.instancetype or spec.preference as KubeVirt does: kinds in any case, in singular or plural, the
// cluster-scoped one if none is given; a revision in the spec takes precedence over one in the status.
func reference(object map[string]any, namespace, key, namespaced, cluster string) (*Reference, *field.Error) {
	spec, _ := object["spec"].(map[string]any)
	if spec[key] == nil {
		return nil, nil
	}
	path := field.NewPath("spec", key)
	matcher, ok := spec[key].(map[string]any)
	if !ok {
		return nil, field.Invalid(path, fmt.Sprintf("%T", spec[key]), "must be an object")
	}
	found := &Reference{Path: path, Namespace: namespace, Name: machine.StringAt(matcher, "name"), Revision: machine.StringAt(matcher, "revisionName")}
	switch kind := strings.ToLower(machine.StringAt(matcher, "kind")); strings.TrimSuffix(kind, "s") {
	case strings.ToLower(namespaced):
		found.Kind = namespaced
	case strings.ToLower(cluster), "":
		found.Kind = cluster
	default:
		return nil, field.NotSupported(path.Child("kind"), machine.StringAt(matcher, "kind"), []string{cluster, namespaced})
	}
	if found.Revision == "" {
		status, _ := object["status"].(map[string]any)
		from, _ := status[key+"Ref"].(map[string]any)
		revision, _ := from["controllerRevisionRef"].(map[string]any)
		found.Revision = machine.StringAt(revision, "name")
		found.Loose = found.Revision != ""
	}
	if found.Name == "" && (found.Revision == "" || found.Loose) {
		return nil, field.Required(path.Child("name"), "it has not been inferred from a volume yet")
	}
	return found, nil
}
