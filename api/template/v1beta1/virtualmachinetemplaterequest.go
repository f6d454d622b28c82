package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualMachineTemplateRequest requests the creation of a VirtualMachineTemplate from
// a VirtualMachine.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:shortName=vmtr;vmtrs
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.status.templateRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
type VirtualMachineTemplateRequest struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is the requested capture. It is immutable.
	//
	// +required
	Spec VirtualMachineTemplateRequestSpec `json:"spec"`

	// Status is the progress of the request.
	//
	// +optional
	Status VirtualMachineTemplateRequestStatus `json:"status,omitempty,omitzero"`
}

// VirtualMachineTemplateRequestList is a list of VirtualMachineTemplateRequests.
//
// +kubebuilder:object:root=true
type VirtualMachineTemplateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []VirtualMachineTemplateRequest `json:"items"`
}

// VirtualMachineTemplateRequestSpec is the capture that a VirtualMachineTemplateRequest
// requests.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable"
// +kubebuilder:validation:XValidation:rule="!has(self.parameterize) || !self.parameterize.exists(p, p == 'INSTANCETYPE' || p == 'PREFERENCE') || (has(self.instancetype) && self.instancetype == 'Keep')",message="INSTANCETYPE and PREFERENCE need instancetype: Keep",fieldPath=".parameterize"
type VirtualMachineTemplateRequestSpec struct {
	// VirtualMachineRef names the VirtualMachine to be captured.
	//
	// +required
	VirtualMachineRef VirtualMachineReference `json:"virtualMachineRef"`

	// TemplateName is the name of the new template. The default is the name of
	// the request.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TemplateName string `json:"templateName,omitempty"`

	// TemplateLabels are put on the new template. No key may start with
	// template.kubevirt.io/.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('template.kubevirt.io/'))",message="keys must not start with template.kubevirt.io/"
	TemplateLabels map[string]string `json:"templateLabels,omitempty"`

	// TTLSecondsAfterFinished is the time in seconds after which a successful
	// request is deleted; 0 deletes it at once. If it is not set, the request is
	// not deleted. A failed request is never deleted.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// Instancetype specifies how the instance type and the preference of the
	// VirtualMachine are captured. Expand writes their values at the time of the
	// capture into the template. Keep writes their names into the template, so that
	// its VirtualMachines use their values at creation. The default is a setting of
	// the installation: Keep for cluster-wide ones, with the parameter INSTANCETYPE,
	// and Expand for others, unless it is changed. This field is Stencil's own.
	//
	// +optional
	Instancetype CaptureInstancetype `json:"instancetype,omitempty"`

	// RunStrategy specifies whether VirtualMachines of the template run. Keep, the
	// default, uses the run strategy of the source; with Halted they do not run until
	// a user starts them. This field is Stencil's own.
	//
	// +optional
	RunStrategy CaptureRunStrategy `json:"runStrategy,omitempty"`

	// Secrets specifies how passwords and private keys in the cloud-init data of
	// the VirtualMachine are captured. Keep, the default, leaves them in the
	// template, where all users who may read it can read them. Parameterize
	// replaces those that are recognized by sensitive parameters: new passwords are
	// generated, private keys have to be provided. In both cases the condition
	// SecretsFound names their fields. This field is Stencil's own.
	//
	// +optional
	Secrets CaptureSecrets `json:"secrets,omitempty"`

	// Secretize sets spec.secretize of the new template: its VirtualMachines have
	// their cloud-init data in a Secret. The template itself contains the data.
	// This field is Stencil's own.
	//
	// +optional
	Secretize bool `json:"secretize,omitempty"`

	// KeepLayout keeps the version of the machine type, the PCI addresses and the
	// number of interface slots that were pinned for the guest of the source, so
	// that guests of the template have the same hardware on KubeVirt's later
	// releases. Without it, what the defaults webhook has written is left out, and
	// each new VirtualMachine gets its own; values that a user has specified are
	// kept in any case. This field is Stencil's own.
	//
	// +optional
	KeepLayout bool `json:"keepLayout,omitempty"`

	// Objects are Services and Secrets that belong to the VirtualMachine, as they
	// are in the cluster: the user who requests the capture reads them, and
	// stencilctl does so on request. They become other objects of the template,
	// for each of its VirtualMachines: with other names, without the fields that
	// the cluster assigns, and with selectors for that VirtualMachine. The
	// template refers to them where the VirtualMachine does. Users who may read
	// the request or the template can read the Secrets. This field is Stencil's
	// own.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Objects []runtime.RawExtension `json:"objects,omitempty"`

	// Parameterize lists the parts of the VirtualMachine that become parameters of
	// the template, besides NAME, which always does. Parts that the VirtualMachine
	// does not have are ignored. This field is Stencil's own.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Parameterize []CaptureParameter `json:"parameterize,omitempty"`

	// Timeout is the maximum duration of the request from its creation, at most a
	// week; the default is one hour. A request that is not finished by then fails,
	// and the objects that it has created are deleted. This field is Stencil's own.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be between 1s and 168h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// CaptureInstancetype specifies how the instance type and the preference are captured.
//
// +kubebuilder:validation:Enum=Expand;Keep
type CaptureInstancetype string

const (
	// CaptureInstancetypeExpand replaces them by their values.
	CaptureInstancetypeExpand CaptureInstancetype = "Expand"

	// CaptureInstancetypeKeep retains their names.
	CaptureInstancetypeKeep CaptureInstancetype = "Keep"
)

// CaptureRunStrategy specifies whether VirtualMachines of the template run.
//
// +kubebuilder:validation:Enum=Halted;Keep
type CaptureRunStrategy string

const (
	// CaptureRunStrategyHalted leaves them stopped until a user starts them.
	CaptureRunStrategyHalted CaptureRunStrategy = "Halted"

	// CaptureRunStrategyKeep uses the run strategy of the source.
	CaptureRunStrategyKeep CaptureRunStrategy = "Keep"
)

// CaptureSecrets specifies how secrets in cloud-init data are captured.
//
// +kubebuilder:validation:Enum=Keep;Parameterize
type CaptureSecrets string

const (
	// CaptureSecretsKeep leaves them in the template.
	CaptureSecretsKeep CaptureSecrets = "Keep"

	// CaptureSecretsParameterize replaces them by sensitive parameters.
	CaptureSecretsParameterize CaptureSecrets = "Parameterize"
)

// CaptureParameter is a part of the VirtualMachine that can become a parameter.
//
// +kubebuilder:validation:Enum=NAME;INSTANCETYPE;PREFERENCE;STORAGE_CLASS;NETWORK;SSH_KEY
type CaptureParameter string

const (
	// CaptureName is the name of the VirtualMachine.
	CaptureName CaptureParameter = "NAME"

	// CaptureInstancetypeName is the name of the instance type.
	CaptureInstancetypeName CaptureParameter = "INSTANCETYPE"

	// CapturePreferenceName is the name of the preference.
	CapturePreferenceName CaptureParameter = "PREFERENCE"

	// CaptureStorageClass is the storage class of the disks that are copied.
	CaptureStorageClass CaptureParameter = "STORAGE_CLASS"

	// CaptureNetwork is the name of the first network attachment.
	CaptureNetwork CaptureParameter = "NETWORK"

	// CaptureSSHKey is the first authorized SSH key in the cloud-init data.
	CaptureSSHKey CaptureParameter = "SSH_KEY"
)

// VirtualMachineReference names a VirtualMachine.
type VirtualMachineReference struct {
	// Namespace is the namespace of the VirtualMachine.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the VirtualMachine.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// VirtualMachineTemplateRequestStatus is the progress of a
// VirtualMachineTemplateRequest.
type VirtualMachineTemplateRequestStatus struct {
	// Conditions are the observations; the types are Ready and Progressing, and
	// Stencil's own Complete, SecretsFound and IdentityFound.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// TemplateRef is the name of the template that was created, in the namespace of the
	// request.
	//
	// +optional
	TemplateRef *corev1.LocalObjectReference `json:"templateRef,omitempty"`

	// SnapshotRef is the snapshot that the template is created from, while it is
	// needed. This field is Stencil's own.
	//
	// +optional
	SnapshotRef *SnapshotReference `json:"snapshotRef,omitempty"`
}

// SnapshotReference identifies one VirtualMachineSnapshot, and no later snapshot with
// the same name.
type SnapshotReference struct {
	// Namespace is the namespace of the VirtualMachine.
	//
	// +required
	Namespace string `json:"namespace"`

	// Name is the name of the snapshot.
	//
	// +required
	Name string `json:"name"`

	// UID is the UID of the snapshot.
	//
	// +required
	UID types.UID `json:"uid"`
}
