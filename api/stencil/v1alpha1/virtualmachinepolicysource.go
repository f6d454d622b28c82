package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VirtualMachinePolicySource applies the VirtualMachinePolicies of an OCI artifact that is
// signed with cosign. What was applied remains when the registry is not available, when a
// newer artifact is not signed or not valid, and when the source is suspended or deleted.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=vmpolsrc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Verified",type=string,JSONPath=`.status.conditions[?(@.type=="Verified")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.status.digest`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachinePolicySource struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec specifies the artifact, and who must have signed it.
	//
	// +required
	Spec VirtualMachinePolicySourceSpec `json:"spec"`

	// Status is what was last observed of the source.
	//
	// +optional
	Status VirtualMachinePolicySourceStatus `json:"status,omitempty,omitzero"`
}

// VirtualMachinePolicySourceList is a list of VirtualMachinePolicySources.
//
// +kubebuilder:object:root=true
type VirtualMachinePolicySourceList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []VirtualMachinePolicySource `json:"items"`
}

// VirtualMachinePolicySourceSpec specifies the artifact, and who must have signed it.
type VirtualMachinePolicySourceSpec struct {
	// URL is the artifact, oci://HOST/REPOSITORY with a tag, which is followed, or with the
	// digest of its manifest, which pins it. The default tag is latest.
	//
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^oci://[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}|@sha256:[0-9a-f]{64})?$`
	URL string `json:"url"`

	// SecretRef is the name of a Secret of type kubernetes.io/dockerconfigjson in the
	// namespace of Stencil's manager. Its credentials are sent by HTTPS, and only to the
	// hosts that it names. The manager needs permission to read it, see
	// policySources.readable in the chart.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretRef string `json:"secretRef,omitempty"`

	// CertConfigMap is the name of a ConfigMap in the namespace of Stencil's manager with
	// certificates of authorities in PEM. The manager needs permission to read it, see
	// policySources.readable in the chart.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CertConfigMap string `json:"certConfigMap,omitempty"`

	// Verify specifies who must have signed the artifact.
	//
	// +required
	Verify PolicySourceVerification `json:"verify"`

	// Interval is the time between two checks of the artifact, 1m to 168h.
	//
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="interval must be 1m to 168h"
	Interval metav1.Duration `json:"interval,omitempty,omitzero"`

	// Suspended stops checks and changes of policies. What was applied remains, and changes
	// of it by users remain too.
	//
	// +optional
	Suspended bool `json:"suspended,omitempty"`

	// Enforcement, if it is set, replaces the field enforcement of all policies of the
	// artifact, such as with Warn while they are introduced.
	//
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// Prune deletes policies of the source that are not in the artifact any more. Without
	// it they remain, and status.left lists them.
	//
	// +optional
	Prune bool `json:"prune,omitempty"`
}

// PolicySourceVerification specifies who must have signed an artifact.
type PolicySourceVerification struct {
	// PublicKeys are public keys in PEM (ECDSA, Ed25519 or RSA), such as `cosign public-key`
	// writes. The signature of one of them is enough. Signatures are those of the manifest
	// that cosign stores beside it in its registry. Transparency logs are not consulted.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:Pattern=`^\s*-{5}BEGIN PUBLIC KEY-{5}\s[A-Za-z0-9+/=\s]+-{5}END PUBLIC KEY-{5}\s*$`
	PublicKeys []string `json:"publicKeys"`
}

// VirtualMachinePolicySourceStatus is what was last observed of a source.
type VirtualMachinePolicySourceStatus struct {
	// ObservedGeneration is the generation of the source that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Verified, whether the artifact that was last found is signed, and
	// Ready, whether its policies are applied.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Digest is the digest of the manifest whose policies are applied.
	//
	// +optional
	Digest string `json:"digest,omitempty"`

	// AppliedAt is when the policies of this digest were first applied.
	//
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`

	// Refreshed is the value of the annotation stencil.kubevirt.io/refresh with which the
	// artifact was last checked.
	//
	// +optional
	Refreshed string `json:"refreshed,omitempty"`

	// Policies are the names of the policies of this digest.
	//
	// +optional
	// +listType=set
	Policies []string `json:"policies,omitempty"`

	// Left are the names of policies of the source that are not in the artifact any more and
	// remain, because spec.prune is not set.
	//
	// +optional
	// +listType=set
	Left []string `json:"left,omitempty"`
}

// LabelPolicySource is on every VirtualMachinePolicy that a VirtualMachinePolicySource has
// applied; its value is the name of the source. AnnotationPolicySourceDigest beside it holds
// the digest of the manifest.
const (
	LabelPolicySource            = "stencil.kubevirt.io/policy-source"
	AnnotationPolicySourceDigest = "stencil.kubevirt.io/policy-source-digest"
)

// FieldManagerPolicySource is the field manager of the policies and of the status that a
// VirtualMachinePolicySource has.
const FieldManagerPolicySource = "stencil-policy-source"

// Reasons of the conditions Verified and Ready of a VirtualMachinePolicySource.
const (
	// ReasonPolicySourceSigned is the reason of an artifact with a valid signature.
	ReasonPolicySourceSigned = "Signed"
	// ReasonPolicySourceNotSigned is the reason of an artifact without one.
	ReasonPolicySourceNotSigned = "NotSigned"
	// ReasonPolicySourceApplied is the reason while all policies are applied.
	ReasonPolicySourceApplied = "Applied"
	// ReasonPolicySourceCheckFailed is the reason when the artifact could not be read.
	ReasonPolicySourceCheckFailed = "CheckFailed"
	// ReasonPolicySourceInvalid is the reason of an artifact that is not valid.
	ReasonPolicySourceInvalid = "InvalidArtifact"
	// ReasonPolicySourceRejected is the reason when admission rejects a policy of it.
	ReasonPolicySourceRejected = "PolicyRejected"
	// ReasonPolicySourceConflict is the reason when policies of these names do not belong to
	// the source.
	ReasonPolicySourceConflict = "PolicyConflict"
	// ReasonPolicySourceWriteFailed is the reason when policies could not be written.
	ReasonPolicySourceWriteFailed = "WriteFailed"
	// ReasonPolicySourceSuspended is the reason of a suspended source.
	ReasonPolicySourceSuspended = "Suspended"
	// ReasonPolicySourceNotEnabled is the reason of every source while the chart's value
	// policySources.enabled is false.
	ReasonPolicySourceNotEnabled = "NotEnabled"
)
