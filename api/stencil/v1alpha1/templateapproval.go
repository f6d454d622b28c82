package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TemplateApproval says which templates are approved in which namespaces, with
// which parameter values, and what people may write beside them. A namespace that
// any approval covers is governed: a VirtualMachine there must satisfy at least
// one of the approvals that cover it.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=tapp
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Templates",type=integer,JSONPath=`.status.templates`
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaces`
// +kubebuilder:printcolumn:name="Conforming",type=integer,JSONPath=`.status.conforming`
// +kubebuilder:printcolumn:name="Violating",type=integer,JSONPath=`.status.violating`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TemplateApproval struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is what is approved, and where.
	//
	// +required
	Spec TemplateApprovalSpec `json:"spec"`

	// Status is what was last observed in the governed namespaces.
	//
	// +optional
	Status TemplateApprovalStatus `json:"status,omitempty,omitzero"`
}

// TemplateApprovalList is a list of TemplateApprovals.
//
// +kubebuilder:object:root=true
type TemplateApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []TemplateApproval `json:"items"`
}

// TemplateApprovalSpec is what a TemplateApproval approves, and where.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespaces) && size(self.namespaces) > 0 || has(self.namespaceSelector)",message="namespaces or namespaceSelector must say where the approval is enforced",fieldPath=".namespaces",reason=FieldValueRequired
type TemplateApprovalSpec struct {
	// Namespaces are names of namespaces that the approval covers, beside those
	// that namespaceSelector selects. The namespaces kube-system, kube-public,
	// kube-node-lease and Stencil's own are never covered.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['kube-system', 'kube-public', 'kube-node-lease']))",message="kube-system, kube-public and kube-node-lease are never covered by an approval"
	Namespaces []string `json:"namespaces,omitempty"`

	// NamespaceSelector selects namespaces that the approval covers by their
	// labels. Without it only namespaces counts; {} selects every namespace, also
	// those that are created later.
	//
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// Templates are the templates that are approved.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Templates []ApprovedTemplate `json:"templates"`

	// Parameters are the parameters of the templates that users may set, and to
	// which values. What is listed holds for every approved template that has the
	// parameter. A parameter that is not listed is closed: it has the default of its
	// template, or what the template generates. Only the parameter that the name of
	// the VirtualMachine sets stays open, unless it also chooses the source of a
	// disk. No VirtualMachine is approved of a template that has a required
	// parameter without default and generator which is not listed.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Parameters []ParameterConstraint `json:"parameters,omitempty"`

	// Overrides are paths of fields that people may add, change and remove beside
	// what the template says, with everything below them. A path is a chain of
	// fields; .* stands for any key of a map and [*] for any item of a list,
	// [name=VALUE] is the item of that name, and ["KEY"] is a key with characters
	// that a plain one cannot have. For instance: spec.runStrategy,
	// metadata.labels["example.com/cost-centre"],
	// spec.template.spec.domain.devices.interfaces[name=default].macAddress. Paths
	// begin with spec, metadata.labels or metadata.annotations.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(spec|metadata\.(labels|annotations))([.\[].*)?$`
	Overrides []string `json:"overrides,omitempty"`

	// ExistingDisks specifies whether a VirtualMachine may have a disk of its
	// dataVolumeTemplates that KubeVirt did not create for it. Without it, none may.
	//
	// +optional
	ExistingDisks ExistingDisks `json:"existingDisks,omitempty,omitzero"`

	// Subjects are whom the approval serves: only they can create and change
	// VirtualMachines by it. Without any it serves everyone.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Subjects []Subject `json:"subjects,omitempty"`

	// ExemptSubjects are never judged by this approval. In a namespace that several
	// approvals cover, only those whom each of them exempts are not judged at all.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	ExemptSubjects []Subject `json:"exemptSubjects,omitempty"`

	// Enforcement says what happens to a request that satisfies none of the
	// approvals of its namespace: Deny refuses it, Warn lets it pass with a
	// warning, Audit lets it pass and counts it in the status. Where several
	// approvals cover a namespace, the strictest of theirs holds.
	//
	// +optional
	// +kubebuilder:default=Deny
	Enforcement Enforcement `json:"enforcement,omitempty"`
}

// Enforcement says what happens to what is not approved.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type Enforcement string

const (
	// EnforcementDeny refuses what is not approved. It is what an approval that
	// says nothing means.
	EnforcementDeny Enforcement = "Deny"

	// EnforcementWarn answers what is not approved with a warning.
	EnforcementWarn Enforcement = "Warn"

	// EnforcementAudit counts what is not approved.
	EnforcementAudit Enforcement = "Audit"
)

// ExistingDisks specifies what happens to a VirtualMachine one of whose
// dataVolumeTemplates names a DataVolume or PersistentVolumeClaim that KubeVirt did
// not create for it. Every approval that denies in a namespace has to allow such a
// disk.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || has(self.policy) && self.policy == 'Allow'",message="selector limits what policy Allow permits, so it needs policy Allow",fieldPath=".selector"
type ExistingDisks struct {
	// Policy is Deny or Allow. Deny refuses to create a VirtualMachine while a disk
	// of that name exists, and to start one with a disk that is not its own. Allow
	// is for restores, disks that a deleted VirtualMachine has left behind, and
	// VirtualMachines that are created anew over their disks.
	//
	// +optional
	// +kubebuilder:default=Deny
	Policy ExistingDiskPolicy `json:"policy,omitempty"`

	// Selector limits Allow to DataVolumes and PersistentVolumeClaims with these
	// labels. Users who may label claims in the namespace control what it selects.
	//
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`
}

// ExistingDiskPolicy specifies whether disks may exist before their VirtualMachine.
//
// +kubebuilder:validation:Enum=Deny;Allow
type ExistingDiskPolicy string

const (
	// ExistingDiskDeny permits only disks that KubeVirt creates for the VirtualMachine.
	ExistingDiskDeny ExistingDiskPolicy = "Deny"
	// ExistingDiskAllow permits disks that exist before the VirtualMachine.
	ExistingDiskAllow ExistingDiskPolicy = "Allow"
)

// ApprovedTemplate is one template, or all templates with certain labels, of one
// namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="exactly one of name and selector must be given",fieldPath=".name"
type ApprovedTemplate struct {
	// Namespace is the namespace of the template.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// Name is the name of the template.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// Selector selects templates by their labels; {} selects all of the namespace.
	//
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// Digest pins the content of the template: as soon as its spec is another one,
	// it is no longer approved. Stencil writes the digest of the template that a
	// VirtualMachine was rendered from into the VirtualMachine's annotation
	// template.kubevirt.io/rendered.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// Sources pins the content of disks: every disk of a new VirtualMachine comes from
	// one of these. Blank disks, and what only configures the guest, come from nothing.
	// A disk whose content has no identity, such as a file by HTTP or an image by its
	// tag, is denied.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Sources []PinnedSource `json:"sources,omitempty"`
}

// PinnedSource is one content that disks may come from.
//
// +kubebuilder:validation:XValidation:rule="has(self.uid) != has(self.digest)",message="exactly one of uid and digest must be given",fieldPath=".uid"
type PinnedSource struct {
	// UID is that of a PersistentVolumeClaim or VolumeSnapshot. A disk comes from it
	// when it is a copy of it, also through a DataSource, or is the claim itself.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-zA-Z-]+$`
	UID string `json:"uid,omitempty"`

	// Digest is that of a container image, which the VirtualMachine or its
	// DataVolume has to name by it: NAME@sha256:...
	//
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}

// ParameterConstraint opens one parameter, to any value or to the values that
// satisfy everything else that it lists.
//
// +kubebuilder:validation:XValidation:rule="has(self.anyValue) && self.anyValue || has(self.allowed) && size(self.allowed) > 0 || has(self.pattern) || has(self.minimum) || has(self.maximum) || has(self.expression)",message="at least one of anyValue, allowed, pattern, minimum, maximum and expression must be given"
// +kubebuilder:validation:XValidation:rule="!has(self.anyValue) || !self.anyValue || !(has(self.allowed) && size(self.allowed) > 0 || has(self.pattern) || has(self.minimum) || has(self.maximum) || has(self.expression))",message="anyValue must not be combined with allowed, pattern, minimum, maximum and expression",fieldPath=".anyValue"
// +kubebuilder:validation:XValidation:rule="!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum",message="minimum must not be above maximum",fieldPath=".minimum"
// +kubebuilder:validation:XValidation:rule="!has(self.message) || has(self.expression)",message="message needs expression",fieldPath=".message"
type ParameterConstraint struct {
	// Name is the name of the parameter.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_]+$`
	Name string `json:"name"`

	// AnyValue allows every value that the template allows. It cannot be combined
	// with allowed, pattern, minimum, maximum and expression.
	//
	// +optional
	AnyValue bool `json:"anyValue,omitempty"`

	// Allowed lists the values that are allowed.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	Allowed []string `json:"allowed,omitempty"`

	// Pattern is a regular expression (RE2) that the whole value must match.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Pattern string `json:"pattern,omitempty"`

	// Minimum is the lowest value that is allowed. The value must be an integer, of
	// any size.
	//
	// +optional
	Minimum *int64 `json:"minimum,omitempty"`

	// Maximum is the highest value that is allowed. The value must be an integer, of
	// any size.
	//
	// +optional
	Maximum *int64 `json:"maximum,omitempty"`

	// Expression is a CEL expression that must be true. In it, value is the value, a
	// string, and params is a map with the values of all parameters, strings too.
	// The functions of Kubernetes' own CEL expressions can be used, for instance
	// quantity(value).compareTo(quantity('16Gi')) <= 0.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`

	// Message tells people what expression asks for, such as "at most 16Gi".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// TemplateApprovalStatus is what was last observed in the namespaces that a
// TemplateApproval covers.
type TemplateApprovalStatus struct {
	// ObservedGeneration is the generation of the approval that this status tells
	// about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the observations; the type Ready says whether the approval is
	// enforced as it is written.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Templates is how many templates are approved now.
	//
	// +optional
	Templates *int32 `json:"templates,omitempty"`

	// Namespaces is how many namespaces are covered now.
	//
	// +optional
	Namespaces *int32 `json:"namespaces,omitempty"`

	// Conforming is how many VirtualMachines in these namespaces satisfied this
	// approval at the last audit.
	//
	// +optional
	Conforming *int32 `json:"conforming,omitempty"`

	// Violating is how many VirtualMachines in these namespaces satisfied none of
	// the approvals that cover them at the last audit, and how many
	// VirtualMachineInstances and pods of such belonged to no VirtualMachine.
	//
	// +optional
	Violating *int32 `json:"violating,omitempty"`

	// Violations are up to 20 of these.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Violations []Violation `json:"violations,omitempty"`

	// Warned is how many of the conforming VirtualMachines have a value of a
	// parameter that this approval does not list. The next release counts them as
	// violating.
	//
	// +optional
	Warned int32 `json:"warned,omitempty"`

	// Warnings are up to 20 of these VirtualMachines.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Warnings []Violation `json:"warnings,omitempty"`

	// LastAuditTime is when an audit last found something else than the one before it, or the first. While nothing
	// changes it stays, though the VirtualMachines are counted again; the metric
	// stencil_audit_last_success_timestamp_seconds tells when they last were.
	//
	// +optional
	LastAuditTime *metav1.Time `json:"lastAuditTime,omitempty"`
}

// Violation is one VirtualMachine that is not approved, or that the next release
// does not approve, or what runs and belongs to no VirtualMachine.
type Violation struct {
	// Kind is the kind of what is named, VirtualMachineInstance or Pod. If it is empty,
	// that is a VirtualMachine.
	//
	// +optional
	Kind string `json:"kind,omitempty"`

	// Namespace is the namespace of the object.
	//
	// +required
	Namespace string `json:"namespace"`

	// Name is the name of the object.
	//
	// +required
	Name string `json:"name"`

	// Cause tells why it is not approved. Values of sensitive parameters are never
	// part of it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Cause string `json:"cause"`
}
