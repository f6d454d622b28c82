package v1beta1

// What Stencil adds to the conditions of a VirtualMachineTemplate, to say why it is or is not Ready.
const (
	// ConditionValid is true on a template that compiles.
	ConditionValid = "Valid"

	// ConditionSourcesReady is true on a template all of whose volumes, instance types, preferences and
	// networks are there and can be used. Its reason is what the column Sources shows.
	ConditionSourcesReady = "SourcesReady"

	// ConditionDryRunSucceeded is true on a template whose VirtualMachine, rendered with defaults, the
	// API server and every admission webhook would accept. It is there when the admin has dry runs
	// switched on.
	ConditionDryRunSucceeded = "DryRunSucceeded"
)

// Reasons of the conditions Valid, SourcesReady, DryRunSucceeded and Ready.
const (
	// ReasonCompiled is the reason of a template that compiles.
	ReasonCompiled = "Compiled"

	// ReasonAllReady is the reason of a template all of whose sources can be used.
	ReasonAllReady = "AllReady"

	// ReasonSourceNotFound is the reason of a template with a source that does not exist.
	ReasonSourceNotFound = "NotFound"

	// ReasonSourceNotReady is the reason of a template with a source that exists and cannot be used.
	ReasonSourceNotReady = "NotReady"

	// ReasonImporting is the reason of a template with a source that is being filled.
	ReasonImporting = "Importing"

	// ReasonSourceUnknown is the reason of a template with a source of which nobody can tell.
	ReasonSourceUnknown = "Unknown"

	// ReasonAccepted is the reason of a template whose VirtualMachine was accepted in a dry run.
	ReasonAccepted = "Accepted"

	// ReasonRefused is the reason of a template whose VirtualMachine was refused in a dry run.
	ReasonRefused = "Refused"

	// ReasonNotTried is the reason of a dry run that could not be made, or whose turn has not come yet.
	ReasonNotTried = "NotTried"

	// ReasonSourcesNotReady is the reason of a template that is not Ready because SourcesReady is not true.
	ReasonSourcesNotReady = "SourcesNotReady"

	// ReasonDryRunFailed is the reason of a template that is not Ready because its dry run was refused.
	ReasonDryRunFailed = "DryRunFailed"
)

// SourceState says whether something that a template depends on can be used.
//
// +kubebuilder:validation:Enum=Ready;NotFound;NotReady;Importing;Remote;Unknown
type SourceState string

const (
	// SourceReady can be used.
	SourceReady SourceState = "Ready"

	// SourceNotFound does not exist.
	SourceNotFound SourceState = "NotFound"

	// SourceNotReady exists and cannot be used; reason and message say why.
	SourceNotReady SourceState = "NotReady"

	// SourceImporting is being filled; progress says how far it is, where that is known.
	SourceImporting SourceState = "Importing"

	// SourceRemote is outside the cluster (a registry, a web server, a bucket) and is not asked.
	SourceRemote SourceState = "Remote"

	// SourceUnknown is nothing that is known of: reason and message say why.
	SourceUnknown SourceState = "Unknown"
)

// SourceStatus is what was last observed of something that a template depends on.
type SourceStatus struct {
	// State says whether it can be used.
	//
	// +required
	State SourceState `json:"state"`

	// Reason is one word for why it cannot: CDI's own, where CDI has one.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is the same in a sentence.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// TemplateVolume is a dataVolumeTemplate or a volume of the VirtualMachine that a template makes with
// the defaults of its parameters, and what its content comes from.
type TemplateVolume struct {
	// Volume is the name of the dataVolumeTemplate or of the volume, or the field of the VirtualMachine
	// where that is neither, such as accessCredentials[0].
	//
	// +required
	Volume string `json:"volume"`

	// Kind is what the content comes from: DataSource, PersistentVolumeClaim, VolumeSnapshot, DataVolume,
	// Secret, ConfigMap, ServiceAccount, or for what is outside the cluster Registry, ContainerDisk, HTTP,
	// S3, GCS, Imageio or VDDK.
	//
	// +required
	Kind string `json:"kind"`

	// Namespace is that of the object, for kinds that are objects.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is that of the object, for kinds that are objects.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// Progress is how much of it is there while its state is Importing, in whole tens of percent.
	//
	// +optional
	Progress string `json:"progress,omitempty"`

	SourceStatus `json:",inline"`
}

// TemplateReference is an instance type or a preference that a template names.
type TemplateReference struct {
	// Kind is its kind.
	//
	// +required
	Kind string `json:"kind"`

	// Namespace is where it is looked for, for kinds with namespaces: that of the template.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is its name.
	//
	// +optional
	Name string `json:"name,omitempty"`

	SourceStatus `json:",inline"`
}

// TemplateNetwork is a network of the VirtualMachine beside that of its pod.
type TemplateNetwork struct {
	// Network is its name in the VirtualMachine.
	//
	// +required
	Network string `json:"network"`

	// Namespace is that of the NetworkAttachmentDefinition.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is that of the NetworkAttachmentDefinition.
	//
	// +required
	Name string `json:"name"`

	SourceStatus `json:",inline"`
}

// TemplateSources is what a template depends on, with the parameters' defaults.
type TemplateSources struct {
	// Volumes are its dataVolumeTemplates and volumes, as far as their content comes from something that
	// has to be there.
	//
	// +optional
	// +listType=atomic
	Volumes []TemplateVolume `json:"volumes,omitempty"`

	// Instancetype is the instance type that it names.
	//
	// +optional
	Instancetype *TemplateReference `json:"instancetype,omitempty"`

	// Preference is the preference that it names.
	//
	// +optional
	Preference *TemplateReference `json:"preference,omitempty"`

	// Networks are the networks that need a NetworkAttachmentDefinition.
	//
	// +optional
	// +listType=atomic
	Networks []TemplateNetwork `json:"networks,omitempty"`
}
