package v1beta1

// Conditions that Stencil adds to a VirtualMachineTemplate. They give the reasons why it is or is not
// Ready.
const (
	// ConditionValid is true on a template that compiles.
	ConditionValid = "Valid"

	// ConditionDisksLent is true on a template if users who may use it get copies of its disks in other namespaces. A template
	// without a disk that is copied does not have it, and Ready does not depend on it.
	ConditionDisksLent = "DisksLent"

	// ConditionSourcesReady is true on a template if all its volumes, instance types, preferences and
	// networks exist and can be used. The column Sources shows its reason.
	ConditionSourcesReady = "SourcesReady"

	// ConditionBootSourceStale is true on a template if the image of a DataSource that it copies is older than the limit of its
	// GoldenImage. A template whose images have no limit does not have it, and Ready does not depend on it.
	ConditionBootSourceStale = "BootSourceStale"

	// ConditionDryRunSucceeded is true on a template if the API server and every admission webhook
	// accept its VirtualMachine, rendered with defaults, in a dry run. It is set only if dry runs are
	// enabled.
	ConditionDryRunSucceeded = "DryRunSucceeded"
)

// Reasons of the conditions Valid, DisksLent, SourcesReady, BootSourceStale, DryRunSucceeded and Ready.
const (
	// ReasonCompiled is the reason of a template that compiles.
	ReasonCompiled = "Compiled"

	// ReasonLent is the reason of a template that lends all disks that are copied.
	ReasonLent = "Lent"

	// ReasonNotLent is the reason of a template with a disk that it does not lend.
	ReasonNotLent = "NotLent"

	// ReasonAllReady is the reason of a template if all its sources can be used.
	ReasonAllReady = "AllReady"

	// ReasonSourceNotFound is the reason of a template with a source that does not exist.
	ReasonSourceNotFound = "NotFound"

	// ReasonSourceNotReady is the reason of a template with a source that exists and cannot be used.
	ReasonSourceNotReady = "NotReady"

	// ReasonImporting is the reason of a template with a source that is being filled.
	ReasonImporting = "Importing"

	// ReasonSourceUnknown is the reason of a template with a source in an unknown state.
	ReasonSourceUnknown = "Unknown"

	// ReasonStale is the reason of a template with an image that is older than its limit.
	ReasonStale = "Stale"

	// ReasonFresh is the reason of a template without an image that is older than its limit.
	ReasonFresh = "Fresh"

	// ReasonAccepted is the reason of a template with a VirtualMachine that was accepted in a dry run.
	ReasonAccepted = "Accepted"

	// ReasonRefused is the reason of a template with a VirtualMachine that was denied in a dry run.
	ReasonRefused = "Refused"

	// ReasonNotTried is the reason of a dry run that could not be made, or has not started yet.
	ReasonNotTried = "NotTried"

	// ReasonSourcesNotReady is the reason of a template that is not Ready because SourcesReady is not true.
	ReasonSourcesNotReady = "SourcesNotReady"

	// ReasonDryRunFailed is the reason of a template that is not Ready because its dry run was denied.
	ReasonDryRunFailed = "DryRunFailed"
)

// SourceState is the state of an object or location that a template depends on.
//
// +kubebuilder:validation:Enum=Ready;NotFound;NotReady;Importing;Remote;Unknown
type SourceState string

const (
	// SourceReady can be used.
	SourceReady SourceState = "Ready"

	// SourceNotFound does not exist.
	SourceNotFound SourceState = "NotFound"

	// SourceNotReady exists and cannot be used; reason and message explain why.
	SourceNotReady SourceState = "NotReady"

	// SourceImporting is being filled; progress is set if it is available.
	SourceImporting SourceState = "Importing"

	// SourceRemote is outside the cluster (a registry, a web server, a bucket) and is not checked.
	SourceRemote SourceState = "Remote"

	// SourceUnknown has a state that cannot be determined; reason and message explain why.
	SourceUnknown SourceState = "Unknown"
)

// SourceStatus is the last observed state of an object or location that a template depends on.
type SourceStatus struct {
	// State is the state of the source.
	//
	// +required
	State SourceState `json:"state"`

	// Reason is a single word for why the source cannot be used: the reason that CDI reports, if there
	// is one.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is the reason in a sentence.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// TemplateVolume is a dataVolumeTemplate or a volume of the VirtualMachine of a template, rendered with
// the defaults of its parameters, and the source of its content.
type TemplateVolume struct {
	// Volume is the name of the dataVolumeTemplate or of the volume, or else the field of the
	// VirtualMachine, such as accessCredentials[0].
	//
	// +required
	Volume string `json:"volume"`

	// Kind is the kind of the source: DataSource, PersistentVolumeClaim, VolumeSnapshot, DataVolume,
	// Secret, ConfigMap, ServiceAccount, or outside the cluster Registry, ContainerDisk, HTTP, S3, GCS,
	// Imageio or VDDK; KIND.GROUP for what a volume populator reads.
	//
	// +required
	Kind string `json:"kind"`

	// Namespace is the namespace of the object, for kinds that are objects.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the object, for kinds that are objects.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// Progress is the progress of the import while its state is Importing, in steps of ten percent.
	//
	// +optional
	Progress string `json:"progress,omitempty"`

	SourceStatus `json:",inline"`
}

// TemplateReference is an instance type or a preference that a template names.
type TemplateReference struct {
	// Kind is the kind of the instance type or preference.
	//
	// +required
	Kind string `json:"kind"`

	// Namespace is the namespace of the template, for kinds with namespaces.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the instance type or preference.
	//
	// +optional
	Name string `json:"name,omitempty"`

	SourceStatus `json:",inline"`
}

// TemplateNetwork is a network of the VirtualMachine other than the pod network.
type TemplateNetwork struct {
	// Network is the name of the network in the VirtualMachine.
	//
	// +required
	Network string `json:"network"`

	// Namespace is the namespace of the NetworkAttachmentDefinition.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the NetworkAttachmentDefinition.
	//
	// +required
	Name string `json:"name"`

	SourceStatus `json:",inline"`
}

// TemplateSources lists the objects and locations that a template depends on, with the defaults of its
// parameters.
type TemplateSources struct {
	// Volumes are the dataVolumeTemplates and volumes with a source that has to exist.
	//
	// +optional
	// +listType=atomic
	Volumes []TemplateVolume `json:"volumes,omitempty"`

	// Instancetype is the instance type that the template names.
	//
	// +optional
	Instancetype *TemplateReference `json:"instancetype,omitempty"`

	// Preference is the preference that the template names.
	//
	// +optional
	Preference *TemplateReference `json:"preference,omitempty"`

	// Networks are the networks that need a NetworkAttachmentDefinition.
	//
	// +optional
	// +listType=atomic
	Networks []TemplateNetwork `json:"networks,omitempty"`
}
