package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// resource is one of the kinds that a capture deals with.
type resource struct {
	schema.GroupVersionResource
	kind string
}

// String tells people which kind is meant.
func (r resource) String() string { return r.kind + " (" + r.GroupVersion().String() + ")" }

var (
	requests        = resource{v1beta1.GroupVersion.WithResource("virtualmachinetemplaterequests"), "VirtualMachineTemplateRequest"}
	templates       = resource{v1beta1.GroupVersion.WithResource("virtualmachinetemplates"), "VirtualMachineTemplate"}
	machines        = resource{schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}, "VirtualMachine"}
	snapshots       = resource{schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshots"}, "VirtualMachineSnapshot"}
	contents        = resource{schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshotcontents"}, "VirtualMachineSnapshotContent"}
	volumeSnapshots = resource{schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}, "VolumeSnapshot"}
	// expansion is what KubeVirt's own API server answers; there are no objects of it.
	expansion   = resource{schema.GroupVersionResource{Group: "subresources.kubevirt.io", Version: "v1", Resource: "expand-vm-spec"}, "expand-vm-spec"}
	dataVolumes = resource{schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}, "DataVolume"}
)

// backendStorage stands in the names of volumes in which KubeVirt keeps EFI variables and TPM state. They are no disks of the machine.
const backendStorage = "persistent-state-for"

// snapshot is what is read of a VirtualMachineSnapshot.
type snapshot struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Source struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"source"`
	} `json:"spec"`
	Status struct {
		Content    string `json:"virtualMachineSnapshotContentName"`
		Phase      string `json:"phase"`
		ReadyToUse bool   `json:"readyToUse"`
		Error      struct {
			Message string `json:"message"`
		} `json:"error"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// taken says whether the moment that the snapshot holds has passed. All of its VolumeSnapshots exist since then, ready or not.
func (s *snapshot) taken() bool { return s.Status.ReadyToUse || s.Status.Phase == "Succeeded" }

// trouble is what the snapshot complains about.
func (s *snapshot) trouble() string {
	if s.Status.Error.Message != "" {
		return s.Status.Error.Message
	}
	for _, condition := range s.Status.Conditions {
		if condition.Type == "Failure" && condition.Status == "True" {
			return strings.TrimSpace(condition.Reason + " " + condition.Message)
		}
	}
	return ""
}

// content is what is read of a VirtualMachineSnapshotContent.
type content struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Source struct {
			VirtualMachine map[string]any `json:"virtualMachine"`
		} `json:"source"`
		VolumeBackups []backup `json:"volumeBackups"`
	} `json:"spec"`
}

// backups are the volumes of which a VolumeSnapshot was taken.
func (c *content) backups() []backup {
	return slices.DeleteFunc(slices.Clone(c.Spec.VolumeBackups), func(each backup) bool {
		return each.VolumeSnapshotName == nil || *each.VolumeSnapshotName == ""
	})
}

// backup is a volume of which a VolumeSnapshot was taken.
type backup struct {
	VolumeName            string  `json:"volumeName"`
	VolumeSnapshotName    *string `json:"volumeSnapshotName"`
	PersistentVolumeClaim struct {
		Spec struct {
			AccessModes      []string `json:"accessModes"`
			VolumeMode       string   `json:"volumeMode"`
			StorageClassName string   `json:"storageClassName"`
			Resources        struct {
				Requests struct {
					Storage string `json:"storage"`
				} `json:"requests"`
			} `json:"resources"`
		} `json:"spec"`
	} `json:"persistentVolumeClaim"`
}

// volumeSnapshot is what is read of a VolumeSnapshot.
type volumeSnapshot struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		RestoreSize string `json:"restoreSize"`
	} `json:"status"`
}

// condition is what is read of a condition, KubeVirt's and CDI's alike.
type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// dataVolume is what is read of a DataVolume.
type dataVolume struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase      string      `json:"phase"`
		Progress   string      `json:"progress"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// trouble is what the DataVolume complains about.
func (d *dataVolume) trouble() string {
	for _, condition := range d.Status.Conditions {
		if condition.Status != "True" && condition.Message != "" && (condition.Reason == "Error" || condition.Type == "Bound" || d.Status.Phase == "Failed") {
			return condition.Message
		}
	}
	return ""
}

// snapshotName is the name of the snapshot that is taken for a request.
func snapshotName(request types.UID) string { return "capture-" + string(request) }

// dataVolumeName is the name of the DataVolume that holds one disk of the template. PersistentVolumeClaims, pods and labels
// are named after it, so it is short.
func dataVolumeName(request types.UID, template, volume string) string {
	sum := sha256.Sum256([]byte(string(request) + "/" + volume))
	suffix := "-" + hex.EncodeToString(sum[:5])
	name := template + "-" + volume
	if most := validation.DNS1123LabelMaxLength - len(suffix); len(name) > most {
		name = name[:most]
	}
	return strings.TrimRight(strings.ReplaceAll(name, ".", "-"), "-") + suffix
}

// templateName is the name of the template that a request asks for.
func templateName(request *v1beta1.VirtualMachineTemplateRequest) string {
	if request.Spec.TemplateName != "" {
		return request.Spec.TemplateName
	}
	return request.Name
}

// ownerReference is a reference to an owner that does not keep the owner from being deleted.
func ownerReference(of resource, name string, uid types.UID) map[string]any {
	return map[string]any{"apiVersion": of.GroupVersion().String(), "kind": of.kind, "name": name, "uid": string(uid)}
}

// ownedBy says whether an object has that owner.
func ownedBy(object metav1.Object, owner types.UID) bool {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == owner {
			return true
		}
	}
	return false
}

// without are the owner references of an object but for that to one owner, as they are to be written.
func without(object metav1.Object, owner types.UID) []any {
	kept := []any{}
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID != owner {
			kept = append(kept, asMap(reference))
		}
	}
	return kept
}

// asMap is a value as JSON has it.
func asMap(value any) map[string]any {
	var object map[string]any
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, &object)
	}
	if err != nil {
		// Values are structures of our own making, which all have a JSON form.
		panic(err)
	}
	return object
}
