package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TemplateApproval specifies which templates are approved in which namespaces,
// with which parameter values, and which other fields users may set. A namespace
// that an approval selects is governed: a VirtualMachine there must satisfy at
// least one of the approvals that select the namespace.
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
	// Namespaces are names of namespaces that the approval selects, in addition
	// to those that namespaceSelector selects. The namespaces kube-system,
	// kube-public, kube-node-lease and Stencil's own are never selected.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['kube-system', 'kube-public', 'kube-node-lease']))",message="kube-system, kube-public and kube-node-lease are never covered by an approval"
	Namespaces []string `json:"namespaces,omitempty"`

	// NamespaceSelector selects namespaces by their labels. Without it only the
	// field namespaces selects; {} selects every namespace, including those that
	// are created later.
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

	// Parameters are the parameters of the templates that users may set, and the
	// values that are allowed. An entry applies to every approved template that has
	// the parameter. A parameter that is not listed is closed: its value is the
	// default of its template, or a value that the template generates. The parameter
	// that is set by the name of the VirtualMachine is open without an entry, unless
	// it also selects the source of a disk. If a required parameter without default
	// and generator is not listed, no VirtualMachine of that template is approved.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Parameters []ParameterConstraint `json:"parameters,omitempty"`

	// Overrides are paths of fields that users may add, change and remove, with
	// everything below them, whatever the template specifies. A path is a chain of
	// fields; .* stands for any key of a map and [*] for any item of a list,
	// [name=VALUE] is the item with that name, and ["KEY"] is a key with
	// characters that a plain key cannot have. For instance: spec.runStrategy,
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

	// Objects specifies which objects besides the VirtualMachine the approved
	// templates may create. Without it, they may create all that they have.
	//
	// +optional
	Objects ApprovedObjects `json:"objects,omitempty,omitzero"`

	// GeneratedValues specifies whether a VirtualMachine that is created with a complete
	// spec may show values of parameters that the template generates and that the
	// approval does not list: users who send the spec can choose them, within what the
	// template may generate. Without it, it may.
	//
	// +optional
	GeneratedValues GeneratedValuePolicy `json:"generatedValues,omitempty"`

	// TemplateLabels specifies whether a VirtualMachine without annotation
	// template.kubevirt.io/template-ref refers to the template that its labels
	// vm.kubevirt.io/template and vm.kubevirt.io/template.namespace name, as consoles
	// set them. Without it, it does not.
	//
	// +optional
	TemplateLabels TemplateLabelPolicy `json:"templateLabels,omitempty"`

	// Subjects are the users, groups and service accounts that the approval applies to:
	// only they can create and change VirtualMachines by it. If empty, it applies to
	// all users.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Subjects []Subject `json:"subjects,omitempty"`

	// ExemptSubjects are exempt from this approval. In a namespace that several
	// approvals select, only subjects that each of them exempts are exempt.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	ExemptSubjects []Subject `json:"exemptSubjects,omitempty"`

	// Enforcement specifies what happens to a request that satisfies none of
	// the approvals of its namespace: Deny denies it, Warn allows it with a
	// warning, Audit allows it and counts it in the status. If several
	// approvals select a namespace, the strictest enforcement applies.
	//
	// +optional
	// +kubebuilder:default=Deny
	Enforcement Enforcement `json:"enforcement,omitempty"`
}

// Enforcement specifies what happens to requests that are not approved.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type Enforcement string

const (
	// EnforcementDeny denies requests that are not approved. It is the default.
	EnforcementDeny Enforcement = "Deny"

	// EnforcementWarn allows requests that are not approved, with a warning.
	EnforcementWarn Enforcement = "Warn"

	// EnforcementAudit allows requests that are not approved, and counts them.
	EnforcementAudit Enforcement = "Audit"
)

// ExistingDisks specifies what happens to a VirtualMachine if one of its
// dataVolumeTemplates names a DataVolume or PersistentVolumeClaim that KubeVirt did
// not create for it. Every approval that denies in a namespace has to allow such a
// disk.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || has(self.policy) && self.policy == 'Allow'",message="selector limits what policy Allow permits, so it needs policy Allow",fieldPath=".selector"
type ExistingDisks struct {
	// Policy is Deny or Allow. Deny denies the creation of a VirtualMachine while a
	// disk of that name exists, and the start of one with a disk that KubeVirt did
	// not create for it. Allow is for restores, disks that remain of a deleted
	// VirtualMachine, and VirtualMachines that are created again for existing
	// disks.
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

// GeneratedValuePolicy specifies whether users may choose values that a template
// generates.
//
// +kubebuilder:validation:Enum=Allow;Deny
type GeneratedValuePolicy string

const (
	// GeneratedValueAllow permits values that the template may generate.
	GeneratedValueAllow GeneratedValuePolicy = "Allow"
	// GeneratedValueDeny permits no VirtualMachine with a complete spec that shows such a
	// value.
	GeneratedValueDeny GeneratedValuePolicy = "Deny"
)

// TemplateLabelPolicy specifies whether labels refer to a template.
//
// +kubebuilder:validation:Enum=Ignore;Accept
type TemplateLabelPolicy string

const (
	// TemplateLabelIgnore ignores the labels.
	TemplateLabelIgnore TemplateLabelPolicy = "Ignore"
	// TemplateLabelAccept takes the labels for a reference to a template that the approval
	// approves.
	TemplateLabelAccept TemplateLabelPolicy = "Accept"
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

	// Digest pins the content of the template: after a change of its spec it is no
	// longer approved. Stencil writes the digest of the template that a
	// VirtualMachine was rendered from into the VirtualMachine's annotation
	// template.kubevirt.io/rendered.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// Sources pins the content of disks: every disk of a new VirtualMachine must come
	// from one of these. Blank disks, and disks that only configure the guest, have no
	// source. A disk with content that has no identity, such as a file by HTTP or an
	// image by its tag, is denied.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Sources []PinnedSource `json:"sources,omitempty"`
}

// PinnedSource is one source of disks, identified by UID or by digest.
//
// +kubebuilder:validation:XValidation:rule="has(self.uid) != has(self.digest)",message="exactly one of uid and digest must be given",fieldPath=".uid"
type PinnedSource struct {
	// UID is the UID of a PersistentVolumeClaim or VolumeSnapshot. A disk comes from it
	// if it is a copy of it, also through a DataSource, or is the claim itself.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-zA-Z-]+$`
	UID string `json:"uid,omitempty"`

	// Digest is the digest of a container image. The VirtualMachine or its DataVolume
	// has to name the image by it: NAME@sha256:...
	//
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}

// ParameterConstraint opens one parameter, for any value or for the values that satisfy
// all constraints that are given.
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

	// Expression is a CEL expression that must be true. The variable value is the
	// value, a string, and params is a map with the values of all parameters, also
	// strings. The functions of CEL in Kubernetes can be used, for instance
	// quantity(value).compareTo(quantity('16Gi')) <= 0.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`

	// Message explains to users what expression requires, such as "at most 16Gi".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// TemplateApprovalStatus is what was last observed in the namespaces that a
// TemplateApproval selects.
type TemplateApprovalStatus struct {
	// ObservedGeneration is the generation of the approval that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the observations; the type Ready is true while the spec of the
	// approval is enforced.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Templates is the number of templates that are approved now.
	//
	// +optional
	Templates *int32 `json:"templates,omitempty"`

	// Namespaces is the number of namespaces that are selected now.
	//
	// +optional
	Namespaces *int32 `json:"namespaces,omitempty"`

	// Conforming is the number of VirtualMachines in these namespaces that satisfied
	// this approval at the last audit.
	//
	// +optional
	Conforming *int32 `json:"conforming,omitempty"`

	// Violating is the number of VirtualMachines in these namespaces that
	// satisfied no approval of their namespace at the last audit, plus the number
	// of VirtualMachineInstances and VM pods that belonged to no VirtualMachine.
	//
	// +optional
	Violating *int32 `json:"violating,omitempty"`

	// Violations lists up to 20 of these.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Violations []Violation `json:"violations,omitempty"`

	// Warned is the number of conforming VirtualMachines that have a value of a
	// parameter that this approval does not list. The next release counts them as
	// violating.
	//
	// +optional
	Warned int32 `json:"warned,omitempty"`

	// Warnings lists up to 20 of these VirtualMachines.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Warnings []Violation `json:"warnings,omitempty"`

	// LastAuditTime is the time of the last audit with a result other than that of the audit before it, or of the
	// first audit. It does not change while the result stays the same; the metric
	// stencil_audit_last_success_timestamp_seconds holds the time of the last audit.
	//
	// +optional
	LastAuditTime *metav1.Time `json:"lastAuditTime,omitempty"`
}

// Violation is one VirtualMachine that is not approved or that the next release does
// not approve, or a VirtualMachineInstance or pod that belongs to no VirtualMachine.
type Violation struct {
	// Kind is the kind of the object, VirtualMachineInstance or Pod. If empty, the
	// object is a VirtualMachine.
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

	// Cause is the reason why the object is not approved. It never contains values of
	// sensitive parameters.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Cause string `json:"cause"`
}
