package observed

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/intern"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Object holds what is retained of an object.
type Object struct {
	Name string
	UID  types.UID
	// OwnerKind and OwnerUID of the controlling owner; empty if there is none.
	OwnerKind string
	OwnerUID  types.UID
	// Ended is true if the object is being deleted, or is a pod that has terminated.
	Ended bool
	// Containers of a pod: init, regular and ephemeral ones.
	Containers []Container
	// Disks are the images of the container disks and of the kernel that an instance boots. Sidecars is its annotation with this name.
	Disks    []string
	Sidecars string
	// DataSources are those from which the disks of a VirtualMachine are cloned: NAMESPACE/NAME, sorted, with spaces between.
	DataSources string
	// Digest identifies what the audit compares.
	Digest [16]byte
}

// Container is a container of a pod.
type Container struct {
	Name, Image string
}

// sidecarsAnnotation lists the containers that KubeVirt adds to a launcher pod.
const sidecarsAnnotation = "hooks.kubevirt.io/hookSidecars"

// reducer sets the fields of an Object that are specific to a kind, and returns what the digest includes beside metadata.
type reducer func(object map[string]any, into *Object) any

// reduced returns the retained fields of an object.
func (reduce reducer) reduced(object *unstructured.Unstructured) Object {
	one := Object{Name: object.GetName(), UID: object.GetUID(), Ended: object.GetDeletionTimestamp() != nil}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		one.OwnerKind, one.OwnerUID = owner.Kind, owner.UID
	}
	compared := reduce(object.Object, &one)
	metadata, _ := object.Object["metadata"].(map[string]any)
	encoded, err := json.Marshal([]any{
		metadata["uid"], metadata["labels"], metadata["ownerReferences"], metadata["finalizers"], one, compared,
	})
	if err == nil {
		sum := sha256.Sum256(encoded)
		one.Digest = [16]byte(sum[:])
	}
	return one
}

// reduceVM includes of the status only whether the VirtualMachine runs, and its references to sizes.
func reduceVM(object map[string]any, into *Object) any {
	into.DataSources = dataSources(object)
	status := machine.MapAt(object, "status")
	return []any{object["spec"], machine.MapAt(object, "metadata")["annotations"], status["created"], status["instancetypeRef"], status["preferenceRef"]}
}

func dataSources(vm map[string]any) string {
	var names []string
	for _, source := range disks.Sources(machine.MapAt(vm, "spec"), machine.StringAt(machine.MapAt(vm, "metadata"), "namespace")) {
		if source.Kind == disks.DataSourceKind {
			names = append(names, source.Namespace+"/"+source.Name)
		}
	}
	slices.Sort(names)
	return texts.Of(strings.Join(slices.Compact(names), " "))
}

// texts of DataSources, which many VirtualMachines have in common.
var texts intern.Texts

func reduceInstance(object map[string]any, into *Object) any {
	spec := machine.MapAt(object, "spec")
	for _, volume := range machine.MapsAt(spec, "volumes") {
		if image := machine.StringAt(machine.MapAt(volume, "containerDisk"), "image"); image != "" {
			into.Disks = append(into.Disks, image)
		}
	}
	if image := machine.StringAt(machine.MapAt(spec, "domain", "firmware", "kernelBoot", "container"), "image"); image != "" {
		into.Disks = append(into.Disks, image)
	}
	annotations := machine.MapAt(object, "metadata", "annotations")
	into.Sidecars = machine.StringAt(annotations, sidecarsAnnotation)
	return []any{spec, annotations}
}

func reducePod(object map[string]any, into *Object) any {
	spec := machine.MapAt(object, "spec")
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, container := range machine.MapsAt(spec, list) {
			into.Containers = append(into.Containers, Container{machine.StringAt(container, "name"), machine.StringAt(container, "image")})
		}
	}
	phase := machine.StringAt(machine.MapAt(object, "status"), "phase")
	into.Ended = into.Ended || phase == "Succeeded" || phase == "Failed"
	return nil
}

// reduceClaim adds nothing: only metadata is compared, such as labels.
func reduceClaim(map[string]any, *Object) any { return nil }
