package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VirtualMachineTemplateImport makes a template, and the volumes with its disks, of a
// package: an OVA, or the OCI artifact of a VirtualMachine. This kind is Stencil's own.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:shortName=vmti;vmtis
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.status.templateRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Percent",type=integer,JSONPath=`.status.percent`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachineTemplateImport struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is the requested import.
	//
	// +required
	Spec VirtualMachineTemplateImportSpec `json:"spec"`

	// Status is the progress of the import.
	//
	// +optional
	Status VirtualMachineTemplateImportStatus `json:"status,omitempty,omitzero"`
}

// VirtualMachineTemplateImportList is a list of VirtualMachineTemplateImports.
//
// +kubebuilder:object:root=true
type VirtualMachineTemplateImportList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []VirtualMachineTemplateImport `json:"items"`
}

// VirtualMachineTemplateImportSpec is the import that a VirtualMachineTemplateImport
// requests. Only approvedPlan and eulaAccepted can be changed: an admission policy ensures
// it.
type VirtualMachineTemplateImportSpec struct {
	// Source is where the package is.
	//
	// +required
	Source ImportSource `json:"source"`

	// TemplateName is the name of the new template. The default is the name of the
	// import.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TemplateName string `json:"templateName,omitempty"`

	// TemplateLabels are put on the new template, which has none from the package. No
	// key may start with template.kubevirt.io/.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('template.kubevirt.io/'))",message="keys must not start with template.kubevirt.io/"
	TemplateLabels map[string]string `json:"templateLabels,omitempty"`

	// Checksum is the digest of the whole package, sha256:HEX. For a registry it is the
	// digest of the manifest.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Checksum string `json:"checksum,omitempty"`

	// Verification specifies whether the manifest of an OVA is verified. Require fails
	// without one; IfPresent is the default. Content of a registry is always verified.
	//
	// +optional
	Verification ImportVerification `json:"verification,omitempty"`

	// Storage is the storage of the disks.
	//
	// +optional
	// +listType=map
	// +listMapKey=disk
	// +kubebuilder:validation:MaxItems=65
	Storage []ImportStorage `json:"storage,omitempty"`

	// Networks maps names of networks in the package to Pod, or to the name of a
	// NetworkAttachmentDefinition (NAME or NAMESPACE/NAME).
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Networks map[string]string `json:"networks,omitempty"`

	// Instancetype is the name of a VirtualMachineClusterInstancetype for the template. VMs
	// have its CPUs and memory, and those of the package are left out. The default is none.
	// A package that has a template or a VirtualMachine cannot be imported with it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a VirtualMachineClusterInstancetype: lower case letters, digits, hyphens and dots"
	Instancetype string `json:"instancetype,omitempty"`

	// Preference is the name of a VirtualMachineClusterPreference for the template. The
	// default is chosen for the operating system that the package names, and None is none.
	// A package that has a template or a VirtualMachine cannot be imported with it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Preference string `json:"preference,omitempty"`

	// DeploymentOption is the ID of one of the configurations of the package.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DeploymentOption string `json:"deploymentOption,omitempty"`

	// EULAAccepted states that the user has read and accepted the licences that the
	// package contains. Without it, an import of such a package waits.
	//
	// +optional
	EULAAccepted bool `json:"eulaAccepted,omitempty"`

	// Approval specifies whether the import waits until a user has approved its plan.
	// The default is Auto.
	//
	// +optional
	Approval ImportApproval `json:"approval,omitempty"`

	// ApprovedPlan is the digest of the plan that is approved, status.plan.digest.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	ApprovedPlan string `json:"approvedPlan,omitempty"`

	// Timeout is the maximum duration of the transfer, at most a week; the default is
	// six hours. More than a day counts as a day.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be between 1s and 168h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// ImportVerification specifies whether manifests are verified.
//
// +kubebuilder:validation:Enum=Require;IfPresent;Skip
type ImportVerification string

const (
	// ImportVerificationRequire fails without a manifest.
	ImportVerificationRequire ImportVerification = "Require"

	// ImportVerificationIfPresent verifies the manifest if there is one.
	ImportVerificationIfPresent ImportVerification = "IfPresent"

	// ImportVerificationSkip does not verify the manifest.
	ImportVerificationSkip ImportVerification = "Skip"
)

// ImportApproval specifies whether the plan of an import has to be approved.
//
// +kubebuilder:validation:Enum=Auto;Manual
type ImportApproval string

const (
	// ImportApprovalAuto approves every plan.
	ImportApprovalAuto ImportApproval = "Auto"

	// ImportApprovalManual waits for approvedPlan.
	ImportApprovalManual ImportApproval = "Manual"
)

// ImportStorage is the storage of one disk, or of all others.
type ImportStorage struct {
	// Disk is the name of a volume of the template, or * for all that are not named.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Disk string `json:"disk"`

	// StorageClassName is the storage class. The default is that of the cluster for VMs,
	// or otherwise its default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`

	// AccessModes and VolumeMode of the volume. The defaults are those of CDI's
	// StorageProfile of the class.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// +optional
	// +kubebuilder:validation:Enum=Block;Filesystem
	VolumeMode *corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`

	// Size of the volume, if it is to be larger than the disk.
	//
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
}

// VirtualMachineTemplateImportStatus is the progress of a
// VirtualMachineTemplateImport.
type VirtualMachineTemplateImportStatus struct {
	// Phase is how far the import is.
	//
	// +optional
	Phase TransferPhase `json:"phase,omitempty"`

	// Percent of the bytes of all disks that were transferred.
	//
	// +optional
	Percent int32 `json:"percent,omitempty"`

	// Conditions are the observations; the types are Ready, Progressing and Sealed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Upload is how far the upload of the package is.
	//
	// +optional
	Upload *ImportUpload `json:"upload,omitempty"`

	// Plan is what the import makes of the package.
	//
	// +optional
	Plan *ImportPlan `json:"plan,omitempty"`

	// Disks are the progress of the disks, in the order of the plan.
	//
	// +optional
	// +listType=atomic
	Disks []TransferDisk `json:"disks,omitempty"`

	// Warnings are sentences about what the template lacks.
	//
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`

	// TemplateRef is the template that was created, in the namespace of the import.
	//
	// +optional
	TemplateRef *corev1.LocalObjectReference `json:"templateRef,omitempty"`

	// StartTime and CompletionTime are those of the import.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// ImportUpload is how far the upload of a package is.
type ImportUpload struct {
	// URL is the address inside of the cluster to which the package is sent, by the
	// protocol of https://tus.io, until it is complete.
	//
	// +optional
	URL string `json:"url,omitempty"`

	// ExternalURL is that address from outside of the cluster, where the cluster admin has
	// set a domain for it.
	//
	// +optional
	ExternalURL string `json:"externalURL,omitempty"`

	// TokenSecretRef names a Secret with the keys token and ca.crt for the upload.
	//
	// +optional
	TokenSecretRef *corev1.LocalObjectReference `json:"tokenSecretRef,omitempty"`

	// Received are the bytes that have arrived.
	//
	// +optional
	Received int64 `json:"received,omitempty"`

	// CompletionTime is when the package was complete.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// ImportPlan is what an import makes of a package.
type ImportPlan struct {
	// Digest identifies the plan: approvedPlan.
	//
	// +required
	Digest string `json:"digest"`

	// Format of the package: OVA or OCI.
	//
	// +optional
	Format string `json:"format,omitempty"`

	// Size of the package in bytes, if the source reports it.
	//
	// +optional
	Size *int64 `json:"size,omitempty"`

	// Description is the digest of the descriptor or of the manifest.
	//
	// +optional
	Description string `json:"description,omitempty"`

	// Revision identifies the content of an HTTP source, if the server reports it: a
	// package that has changed since is not imported.
	//
	// +optional
	Revision string `json:"revision,omitempty"`

	// VerifiedBy is the algorithm of the digests in the package: SHA-256, or SHA-1, which
	// detects damage but no attack. It is empty if the package has no digests, or only
	// after disks of a source that cannot be read by ranges; those are compared too.
	//
	// +optional
	VerifiedBy string `json:"verifiedBy,omitempty"`

	// Template is the template that will be created.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Template *runtime.RawExtension `json:"template,omitempty"`

	// Disks are the disks that will be written.
	//
	// +optional
	// +listType=atomic
	Disks []ImportPlanDisk `json:"disks,omitempty"`

	// Agreements are licences that have to be accepted by eulaAccepted.
	//
	// +optional
	// +listType=atomic
	Agreements []string `json:"agreements,omitempty"`

	// Notes describe how the items of the package are handled.
	//
	// +optional
	// +listType=atomic
	Notes []string `json:"notes,omitempty"`
}

// ImportPlanDisk is a disk of a plan.
type ImportPlanDisk struct {
	// Name of the PersistentVolumeClaim.
	//
	// +required
	Name string `json:"name"`

	// Volume of the template's VirtualMachine.
	//
	// +optional
	Volume string `json:"volume,omitempty"`

	// File in the package.
	//
	// +optional
	File string `json:"file,omitempty"`

	// Size of the disk in bytes.
	//
	// +optional
	Size int64 `json:"size,omitempty"`

	// CDROM is true for the content of a CD drive.
	//
	// +optional
	CDROM bool `json:"cdrom,omitempty"`
}
