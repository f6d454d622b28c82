package revision

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// HolderKind is the kind of object that refers to a stored copy.
type HolderKind string

// Kinds of holders. The copy in a start revision is the one that a running VirtualMachine was started with.
const (
	VirtualMachine HolderKind = "VirtualMachine"
	Snapshot       HolderKind = "VirtualMachineSnapshot"
	StartRevision  HolderKind = "StartRevision"
)

// Holder is an object that refers to stored copies.
type Holder struct {
	Kind HolderKind
	Name string
}

// Reference is a reference to a stored copy.
type Reference struct {
	Holder
	Family Family
	// Kind, Name and Namespace are those of the instance type or preference; Namespace is empty for cluster-scoped kinds.
	ObjectKind, ObjectName, ObjectNamespace string
	// Revision is the name of the ControllerRevision.
	Revision string
	// FromStatus is true if only the status has the reference: KubeVirt uses that copy only if its label has the name of the object.
	FromStatus bool
}

// References are the references of one object.
type References struct {
	References []Reference
	// Mismatched are the fields of which spec and status refer to different copies. KubeVirt uses that of the spec.
	Mismatched []string
	// Unpinned are the fields that refer to an instance type or preference without a copy.
	Unpinned []string
}

// ReferencesOf returns the references of a VirtualMachine, or of the one that a snapshot or a start revision contains.
func ReferencesOf(holder Holder, namespace string, vm map[string]any) (References, error) {
	var found References
	for _, family := range []Family{Instancetype, Preference} {
		read := instancetype.Instancetype
		if family == Preference {
			read = instancetype.Preference
		}
		r, invalid := read(vm, namespace)
		if invalid != nil {
			return References{}, fmt.Errorf("%s %s: %w", holder.Kind, holder.Name, invalid)
		}
		if r == nil {
			continue
		}
		one := Reference{Holder: holder, Family: family, ObjectKind: r.Kind, ObjectName: r.Name, Revision: r.Revision, FromStatus: r.Loose}
		if r.Namespaced() {
			one.ObjectNamespace = namespace
		}
		if one.Revision == "" {
			found.Unpinned = append(found.Unpinned, "spec."+string(family))
			continue
		}
		found.References = append(found.References, one)
		if status := statusRevision(vm, family); !one.FromStatus && status != "" && status != one.Revision {
			found.Mismatched = append(found.Mismatched, "spec."+string(family))
			one.Revision, one.FromStatus = status, true
			found.References = append(found.References, one)
		}
	}
	return found, nil
}

func statusRevision(vm map[string]any, family Family) string {
	status, _ := vm["status"].(map[string]any)
	from, _ := status[string(family)+"Ref"].(map[string]any)
	revision, _ := from["controllerRevisionRef"].(map[string]any)
	return machine.StringAt(revision, "name")
}

// startRevisionPrefix begins the names of KubeVirt's ControllerRevisions of started VirtualMachines.
const startRevisionPrefix = "revision-start-vm-"

// IsStartRevision reports whether a ControllerRevision of this name holds a VirtualMachine as it was started.
func IsStartRevision(name string) bool { return strings.HasPrefix(name, startRevisionPrefix) }
