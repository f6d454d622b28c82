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
	"github.com/vmstencil/stencil/reconcilers/internal/expansion"
)

// resource is one of the kinds that captures use.
type resource struct {
	schema.GroupVersionResource
	kind string
}

// String returns kind and group version for messages.
func (r resource) String() string { return r.kind + " (" + r.GroupVersion().String() + ")" }

var (
	requests        = resource{v1beta1.GroupVersion.WithResource("virtualmachinetemplaterequests"), "VirtualMachineTemplateRequest"}
	templates       = resource{v1beta1.GroupVersion.WithResource("virtualmachinetemplates"), "VirtualMachineTemplate"}
	virtualMachines = resource{schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}, "VirtualMachine"}
	snapshots       = resource{schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshots"}, "VirtualMachineSnapshot"}
	contents        = resource{schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshotcontents"}, "VirtualMachineSnapshotContent"}
	volumeSnapshots = resource{schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}, "VolumeSnapshot"}
	expandSpec      = resource{expansion.Resource, expansion.Resource.Resource}
	dataVolumes     = resource{schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}, "DataVolume"}
)

// backendStorage is part of the names of volumes in which KubeVirt stores EFI variables and TPM state. They are not disks of the VM.
const backendStorage = "persistent-state-for"

// snapshot holds the fields of a VirtualMachineSnapshot that are read.
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

// taken reports whether the point in time of the snapshot has passed. From then on all of its VolumeSnapshots exist, ready or not.
func (s *snapshot) taken() bool { return s.Status.ReadyToUse || s.Status.Phase == "Succeeded" }

// trouble returns the error that the snapshot reports.
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

// content holds the fields of a VirtualMachineSnapshotContent that are read.
type content struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Source struct {
			VirtualMachine map[string]any `json:"virtualMachine"`
		} `json:"source"`
		VolumeBackups []backup `json:"volumeBackups"`
	} `json:"spec"`
}

// backups returns the volumes of which a VolumeSnapshot was taken.
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

// volumeSnapshot holds the fields of a VolumeSnapshot that are read.
type volumeSnapshot struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		RestoreSize string `json:"restoreSize"`
	} `json:"status"`
}

// condition holds the fields of a condition of KubeVirt or CDI that are read.
type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// dataVolume holds the fields of a DataVolume that are read.
type dataVolume struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase      string      `json:"phase"`
		Progress   string      `json:"progress"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// trouble returns the error that the DataVolume reports.
func (d *dataVolume) trouble() string {
	for _, condition := range d.Status.Conditions {
		if condition.Status != "True" && condition.Message != "" && (condition.Reason == "Error" || condition.Type == "Bound" || d.Status.Phase == "Failed") {
			return condition.Message
		}
	}
	return ""
}

// snapshotName returns the name of the snapshot that is taken for a request.
func snapshotName(request types.UID) string { return "capture-" + string(request) }

// dataVolumeName returns the name of the DataVolume that holds one disk of the template. It has at most 63 characters, because
// PersistentVolumeClaims, pods and labels are named after it.
func dataVolumeName(request types.UID, template, volume string) string {
	sum := sha256.Sum256([]byte(string(request) + "/" + volume))
	suffix := "-" + hex.EncodeToString(sum[:5])
	name := template + "-" + volume
	if most := validation.DNS1123LabelMaxLength - len(suffix); len(name) > most {
		name = name[:most]
	}
	return strings.TrimRight(strings.ReplaceAll(name, ".", "-"), "-") + suffix
}

// templateName returns the requested name of the template.
func templateName(request *v1beta1.VirtualMachineTemplateRequest) string {
	if request.Spec.TemplateName != "" {
		return request.Spec.TemplateName
	}
	return request.Name
}

// ownerReference returns a reference that does not block the deletion of the owner.
func ownerReference(of resource, name string, uid types.UID) map[string]any {
	return map[string]any{"apiVersion": of.GroupVersion().String(), "kind": of.kind, "name": name, "uid": string(uid)}
}

// ownedBy reports whether an object has an owner with this UID.
func ownedBy(object metav1.Object, owner types.UID) bool {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == owner {
			return true
		}
	}
	return false
}

// without returns the owner references of an object except for that to one owner, in the form of JSON.
func without(object metav1.Object, owner types.UID) []any {
	remaining := []any{}
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID != owner {
			remaining = append(remaining, asMap(reference))
		}
	}
	return remaining
}

// asMap returns a value in the form of JSON.
func asMap(value any) map[string]any {
	var object map[string]any
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, &object)
	}
	if err != nil {
		// All values are internal structures, which can be encoded.
		panic(err)
	}
	return object
}
