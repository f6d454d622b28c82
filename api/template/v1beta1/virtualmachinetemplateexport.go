package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VirtualMachineTemplateExport makes a package of a template and of copies of its
// disks, which can be downloaded, or is written to a registry. This kind is Stencil's own.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:shortName=vmte;vmtes
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.spec.templateRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`,priority=1
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expiresAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachineTemplateExport struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is the requested export. It is immutable.
	//
	// +required
	Spec VirtualMachineTemplateExportSpec `json:"spec"`

	// Status is the progress of the export.
	//
	// +optional
	Status VirtualMachineTemplateExportStatus `json:"status,omitempty,omitzero"`
}

// VirtualMachineTemplateExportList is a list of VirtualMachineTemplateExports.
//
// +kubebuilder:object:root=true
type VirtualMachineTemplateExportList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []VirtualMachineTemplateExport `json:"items"`
}

// VirtualMachineTemplateExportSpec is the export that a VirtualMachineTemplateExport
// requests.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable"
// +kubebuilder:validation:XValidation:rule="!has(self.target) || has(self.format) && self.format == 'OCI'",message="format must be OCI where target is a registry"
// +kubebuilder:validation:XValidation:rule="!has(self.target) || !has(self.ttl)",message="ttl must not be set where target is a registry, which keeps the package"
type VirtualMachineTemplateExportSpec struct {
	// TemplateRef names the template, in the namespace of the export. The user needs the
	// verb export on it.
	//
	// +required
	TemplateRef corev1.LocalObjectReference `json:"templateRef"`

	// SourceNamespaces are the namespaces that disks of the template are copied from,
	// except for that of the export. The user needs the right to create
	// datavolumes/source in each.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	SourceNamespaces []string `json:"sourceNamespaces,omitempty"`

	// Format of the package. The default is OVA.
	//
	// +optional
	Format ExportFormat `json:"format,omitempty"`

	// Compression specifies how strongly the disks in the package are compressed. Fast is
	// the default. Best makes the package a little smaller and takes up to ten times as
	// long. None is for disks that cannot be compressed, and for storage that compresses.
	//
	// +optional
	Compression ExportCompression `json:"compression,omitempty"`

	// Target is where the package is written to. The default is a volume, from which it
	// can be downloaded.
	//
	// +optional
	Target *ExportTarget `json:"target,omitempty"`

	// StorageClassName is the storage class of the volume that holds the package until
	// the export is deleted. The default is that of the cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`

	// TTL is the time from readiness until the package is deleted, at most a week; the
	// default is two hours.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be between 1m and 168h"
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// ExportTarget is where a package is written to.
type ExportTarget struct {
	// Registry is written to. The export has succeeded when the registry has the package,
	// and what it has made in the cluster is deleted then.
	//
	// +required
	Registry ExportTargetRegistry `json:"registry"`
}

// ExportTargetRegistry is an artifact in a registry.
type ExportTargetRegistry struct {
	// Image is REGISTRY/REPOSITORY:TAG. A tag that exists is replaced.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have a tag and no digest"
	Image string `json:"image"`

	// Insecure permits HTTP.
	//
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// SecretRef names a Secret of the namespace with the keys username and password.
	//
	// +optional
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`

	// CertificatesRef names a ConfigMap of the namespace with certificates of
	// authorities in PEM, that are trusted besides those of the system.
	//
	// +optional
	CertificatesRef *corev1.LocalObjectReference `json:"certificatesRef,omitempty"`
}

// ExportFormat is the format of a package.
//
// +kubebuilder:validation:Enum=OVA;OCI
type ExportFormat string

const (
	// ExportOVA is an OVA with disks as VMDK.
	ExportOVA ExportFormat = "OVA"

	// ExportOCI is the tar archive of an OCI layout, as virtctl writes it.
	ExportOCI ExportFormat = "OCI"
)

// ExportCompression specifies how strongly disks are compressed.
//
// +kubebuilder:validation:Enum=Fast;Best;None
type ExportCompression string

const (
	// ExportCompressionFast compresses as fast as disks are usually read.
	ExportCompressionFast ExportCompression = "Fast"

	// ExportCompressionBest makes the package as small as its format permits.
	ExportCompressionBest ExportCompression = "Best"

	// ExportCompressionNone leaves out zeros only.
	ExportCompressionNone ExportCompression = "None"
)

// VirtualMachineTemplateExportStatus is the progress of a
// VirtualMachineTemplateExport.
type VirtualMachineTemplateExportStatus struct {
	// Phase is how far the export is.
	//
	// +optional
	Phase TransferPhase `json:"phase,omitempty"`

	// Percent of the bytes of all disks that were read.
	//
	// +optional
	Percent int32 `json:"percent,omitempty"`

	// Conditions are the observations; the types are Ready, Progressing and Sealed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// URL of the package, inside of the cluster. It supports ranges.
	//
	// +optional
	URL string `json:"url,omitempty"`

	// ExternalURL of the package, from outside of the cluster, where the cluster admin has
	// set a domain for it. The certificate of its server is that of the cluster's ingress,
	// or the one in the Secret if the ingress passes connections through.
	//
	// +optional
	ExternalURL string `json:"externalURL,omitempty"`

	// TokenSecretRef names the Secret with the token of the URL, in the key token, and
	// the certificate of the server, in the key ca.crt. Requests have the header
	// Authorization: Bearer TOKEN.
	//
	// +optional
	TokenSecretRef *corev1.LocalObjectReference `json:"tokenSecretRef,omitempty"`

	// Image is the package in the registry that the target names:
	// REGISTRY/REPOSITORY@DIGEST.
	//
	// +optional
	Image string `json:"image,omitempty"`

	// Size of the package in bytes.
	//
	// +optional
	Size int64 `json:"size,omitempty"`

	// Digest of the package, sha256:HEX.
	//
	// +optional
	Digest string `json:"digest,omitempty"`

	// ExpiresAt is when the package is deleted.
	//
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// Disks are the progress of the disks.
	//
	// +optional
	// +listType=atomic
	Disks []TransferDisk `json:"disks,omitempty"`

	// Warnings are sentences about what the package lacks.
	//
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
}
