package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualMachineTemplateRequest asks for a VirtualMachineTemplate to be made
// from a VirtualMachine.
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

	// Spec is what is asked for. It cannot be changed.
	//
	// +required
	Spec VirtualMachineTemplateRequestSpec `json:"spec"`

	// Status is how far the request has come.
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

// VirtualMachineTemplateRequestSpec is what a VirtualMachineTemplateRequest
// asks for.
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

	// TTLSecondsAfterFinished is how many seconds after its success a request is
	// deleted; 0 deletes it at once. Without it the request stays. A request that
	// has failed always stays.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// Instancetype says what becomes of the instance type and the preference of
	// the VirtualMachine. Expand, the default, writes what they stood for when the
	// VirtualMachine was captured into the template. Keep has the template name
	// them, so that its VirtualMachines follow what they stand for then. This
	// field is Stencil's own.
	//
	// +optional
	Instancetype CaptureInstancetype `json:"instancetype,omitempty"`

	// RunStrategy says whether VirtualMachines of the template run. Halted, the
	// default, has them wait until somebody starts them; Keep takes the run
	// strategy of the source. This field is Stencil's own.
	//
	// +optional
	RunStrategy CaptureRunStrategy `json:"runStrategy,omitempty"`

	// Secrets says what becomes of passwords and private keys that stand in the
	// cloud-init data of the VirtualMachine. Keep, the default, leaves them in the
	// template, where whoever may read it sees them. Parameterize replaces those
	// that are known as such by sensitive parameters: passwords are generated anew,
	// private keys have to be given. The condition SecretsFound tells where they
	// are in both cases. This field is Stencil's own.
	//
	// +optional
	Secrets CaptureSecrets `json:"secrets,omitempty"`

	// Parameterize lists what becomes a parameter of the template besides NAME,
	// which always does. What the VirtualMachine does not have is passed over. This
	// field is Stencil's own.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Parameterize []CaptureParameter `json:"parameterize,omitempty"`

	// Timeout is how long the request may take from its creation, at most a week;
	// the default is one hour. A request that is not finished by then fails, and what
	// it has made is deleted. This field is Stencil's own.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be between 1s and 168h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// CaptureInstancetype says what becomes of the instance type and the preference.
//
// +kubebuilder:validation:Enum=Expand;Keep
type CaptureInstancetype string

const (
	// CaptureInstancetypeExpand replaces them by what they stand for.
	CaptureInstancetypeExpand CaptureInstancetype = "Expand"

	// CaptureInstancetypeKeep keeps their names.
	CaptureInstancetypeKeep CaptureInstancetype = "Keep"
)

// CaptureRunStrategy says whether VirtualMachines of the template run.
//
// +kubebuilder:validation:Enum=Halted;Keep
type CaptureRunStrategy string

const (
	// CaptureRunStrategyHalted has them wait until somebody starts them.
	CaptureRunStrategyHalted CaptureRunStrategy = "Halted"

	// CaptureRunStrategyKeep keeps the run strategy of the source.
	CaptureRunStrategyKeep CaptureRunStrategy = "Keep"
)

// CaptureSecrets says what becomes of secrets in cloud-init data.
//
// +kubebuilder:validation:Enum=Keep;Parameterize
type CaptureSecrets string

const (
	// CaptureSecretsKeep leaves them where they are.
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

// VirtualMachineTemplateRequestStatus is how far a
// VirtualMachineTemplateRequest has come.
type VirtualMachineTemplateRequestStatus struct {
	// Conditions are the observations; the types are Ready, Progressing, and,
	// which are Stencil's own, Complete and SecretsFound.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// TemplateRef names the template that was made, in the request's namespace.
	//
	// +optional
	TemplateRef *corev1.LocalObjectReference `json:"templateRef,omitempty"`

	// SnapshotRef is the snapshot that the template is made from, for as long as it
	// is needed. This field is Stencil's own.
	//
	// +optional
	SnapshotRef *SnapshotReference `json:"snapshotRef,omitempty"`
}

// SnapshotReference is one VirtualMachineSnapshot, and none that came after it
// under the same name.
type SnapshotReference struct {
	// Namespace is that of the VirtualMachine.
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
