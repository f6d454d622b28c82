package instancetype

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Kinds of what a VirtualMachine takes its size and its devices from.
const (
	KindInstancetype        = "VirtualMachineInstancetype"
	KindClusterInstancetype = "VirtualMachineClusterInstancetype"
	KindPreference          = "VirtualMachinePreference"
	KindClusterPreference   = "VirtualMachineClusterPreference"
)

// Reference names an instance type or a preference as a VirtualMachine does.
type Reference struct {
	// Path is where the VirtualMachine names it: spec.instancetype or spec.preference.
	Path *field.Path
	// Kind is one of the Kind constants.
	Kind string
	// Namespace is that of the VirtualMachine.
	Namespace string
	Name      string
	// Revision is the ControllerRevision, in Namespace, that holds the content which
	// the VirtualMachine uses; empty when that is the object's own.
	Revision string
	// Loose says that Revision comes from the status: it counts only if it is one of
	// an object called Name, which KubeVirt looks at as well.
	Loose bool
}

// String names what is referred to.
func (r Reference) String() string {
	if r.Revision != "" && !r.Loose {
		return fmt.Sprintf("ControllerRevision %s/%s", r.Namespace, r.Revision)
	}
	if r.Kind == KindInstancetype || r.Kind == KindPreference {
		return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name)
	}
	return fmt.Sprintf("%s %s", r.Kind, r.Name)
}

// Resolver finds instance types and preferences.
type Resolver interface {
	// Resolve returns what a reference refers to: an object with kind, metadata (name,
	// labels, annotations) and spec, which must not be modified. The error says in
	// words for a person why it is not known.
	Resolve(ctx context.Context, reference Reference) (map[string]any, error)
}

// Instancetype returns the reference to the instance type that a VirtualMachine names, nil
// when it names none; namespace is that of the request.
func Instancetype(object map[string]any, namespace string) (*Reference, *field.Error) {
	return reference(object, namespace, "instancetype", KindInstancetype, KindClusterInstancetype)
}

// Preference is Instancetype for the preference.
func Preference(object map[string]any, namespace string) (*Reference, *field.Error) {
	return reference(object, namespace, "preference", KindPreference, KindClusterPreference)
}

// reference reads spec.instancetype or spec.preference the way KubeVirt does: kinds in
// any case, in singular or plural, the cluster's when none is given; a revision in the spec
// before one in the status.
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
