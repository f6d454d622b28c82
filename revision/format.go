package revision

import instancetypeapi "kubevirt.io/api/instancetype"

// Group is the API group of instance types and preferences.
const Group = instancetypeapi.GroupName

// Target is the version that stored copies are converted to. The next version of the API is added to versions, and this constant
// is changed.
const Target = V1beta1

// Version is a version of the API group.
type Version string

// Versions that KubeVirt has stored.
const (
	V1alpha1 Version = "v1alpha1"
	V1alpha2 Version = "v1alpha2"
	V1beta1  Version = "v1beta1"
)

// versions are the known versions, oldest first.
var versions = []Version{V1alpha1, V1alpha2, V1beta1}

// Family distinguishes instance types from preferences.
type Family string

// Families. A SpecRevision does not state its family: it is that of the field that refers to it.
const (
	Instancetype  Family = "instancetype"
	Preference    Family = "preference"
	UnknownFamily Family = ""
)

// kinds are the kinds of stored objects.
var kinds = map[string]Family{
	"VirtualMachineInstancetype":        Instancetype,
	"VirtualMachineClusterInstancetype": Instancetype,
	"VirtualMachinePreference":          Preference,
	"VirtualMachineClusterPreference":   Preference,
}

// Labels of a stored copy. KubeVirt uses a copy that the status of a VirtualMachine refers to only if LabelName is the name of its
// instance type or preference.
const (
	LabelGeneration = instancetypeapi.ControllerRevisionObjectGenerationLabel
	LabelKind       = instancetypeapi.ControllerRevisionObjectKindLabel
	LabelName       = instancetypeapi.ControllerRevisionObjectNameLabel
	LabelUID        = instancetypeapi.ControllerRevisionObjectUIDLabel
	LabelVersion    = instancetypeapi.ControllerRevisionObjectVersionLabel
)
