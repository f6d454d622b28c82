package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VirtualMachinePolicy is a rule in Rego for VirtualMachines, templates and
// VirtualMachineTemplateRequests, with the requests that it applies to, its
// parameters, and whether it denies, warns or audits. It becomes active when it
// compiles and its own tests pass; until then the last version that did remains
// active.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=vmpol,path=virtualmachinepolicies
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Compiled",type=string,JSONPath=`.status.conditions[?(@.type=="Compiled")].status`
// +kubebuilder:printcolumn:name="Tested",type=string,JSONPath=`.status.conditions[?(@.type=="Tested")].status`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="Violating",type=integer,JSONPath=`.status.audit.violating`
// +kubebuilder:printcolumn:name="P99us",type=integer,JSONPath=`.status.evaluations.p99Microseconds`
// +kubebuilder:printcolumn:name="Severity",type=string,JSONPath=`.status.severity`,priority=1
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.status.title`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachinePolicy struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is the rule.
	//
	// +required
	Spec VirtualMachinePolicySpec `json:"spec"`

	// Status is what was last observed of the policy.
	//
	// +optional
	Status VirtualMachinePolicyStatus `json:"status,omitempty,omitzero"`
}

// AnnotationStoreFailing on a VirtualMachinePolicy with the value "true" stores a version that the webhook would reject: a first version with failing
// tests and enforcement Deny, or one that fails on a VirtualMachine when it is tried. The failures are returned as warnings.
const AnnotationStoreFailing = "stencil.kubevirt.io/store-failing"

// VirtualMachinePolicyList is a list of VirtualMachinePolicies.
//
// +kubebuilder:object:root=true
type VirtualMachinePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []VirtualMachinePolicy `json:"items"`
}

// VirtualMachinePolicySpec is a rule and where it applies.
type VirtualMachinePolicySpec struct {
	// Rego is one module in Rego v1. Its entry rules are deny and warn, partial sets of
	// strings or of objects with msg and, optionally, field and fix. Any package name is
	// allowed: policies with the same package name do not share a package.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Rego string `json:"rego"`

	// Match specifies the requests that the policy applies to.
	//
	// +optional
	// +kubebuilder:default={}
	Match PolicyMatch `json:"match,omitzero"`

	// Parameters is the value of data.parameters in the module: any JSON object.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`

	// ParametersSchema is the schema of parameters: a structural OpenAPI v3 schema, as
	// in a CustomResourceDefinition. Parameters that violate it are rejected, and the
	// module's references to data.parameters are checked against it. If it is not set,
	// parameters are not validated.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ParametersSchema *runtime.RawExtension `json:"parametersSchema,omitempty"`

	// Data are values of the cluster that the module reads as data.cluster.NAME. While one
	// of them does not exist, the policy cannot be evaluated, and failureMode decides.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Data []PolicyData `json:"data,omitempty"`

	// Enforcement specifies what happens to a request for which the module's rule
	// deny has findings: Deny denies it, Warn allows it with a warning, Audit allows
	// it and counts it.
	//
	// +optional
	// +kubebuilder:default=Deny
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// FailureMode specifies what happens to a request when the policy cannot be
	// evaluated, because of an error or a timeout: Deny treats the failure as a denial,
	// which enforcement Warn turns into a warning; Allow allows the request.
	//
	// +optional
	// +kubebuilder:default=Deny
	FailureMode FailureMode `json:"failureMode,omitempty"`

	// TimeoutMilliseconds is the maximum duration of one evaluation, in milliseconds.
	//
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	TimeoutMilliseconds int32 `json:"timeoutMilliseconds,omitempty"`

	// Tests are run whenever the policy changes. A version with a failed test does not
	// become active.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Tests []PolicyTest `json:"tests,omitempty"`
}

// PolicyData is a value of the cluster that a policy reads.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMapKey), has(self.virtualMachines), has(self.resourceQuota)].exists_one(given, given)",message="exactly one of configMapKey, virtualMachines and resourceQuota must be given"
type PolicyData struct {
	// Name is the name of the value in data.cluster: letters, digits and underscores.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	Name string `json:"name"`

	// ConfigMapKey is a key of a ConfigMap in the namespace where Stencil is installed. Its
	// text is read as YAML or JSON: an object or a list becomes one, any other text is the
	// string itself.
	//
	// +optional
	ConfigMapKey *PolicyConfigMapKey `json:"configMapKey,omitempty"`

	// VirtualMachines is an object with the number of VirtualMachines in the namespace of
	// the object that is evaluated, and their size: count, cpus, memory (in bytes) of their
	// guests, and unknown, the number of those whose size is not known. The VirtualMachine
	// that is evaluated is not counted. The numbers are those at the time of the
	// evaluation: requests that are evaluated at the same time can each be allowed.
	//
	// +optional
	VirtualMachines *PolicyVirtualMachines `json:"virtualMachines,omitempty"`

	// ResourceQuota is a ResourceQuota in the namespace of the object that is evaluated, as
	// an object with hard and used: quantities by resource, as strings. Both are empty if
	// there is none of this name.
	//
	// +optional
	ResourceQuota *PolicyResourceQuota `json:"resourceQuota,omitempty"`
}

// PolicyVirtualMachines selects VirtualMachines in the namespace of the object that is
// evaluated.
type PolicyVirtualMachines struct {
	// Selector selects by the labels of the VirtualMachines; all if it is not set.
	//
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`
}

// PolicyResourceQuota is a ResourceQuota in the namespace of the object that is evaluated.
type PolicyResourceQuota struct {
	// Name is the name of the ResourceQuota.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// PolicyConfigMapKey is a key of a ConfigMap in the namespace where Stencil is installed.
type PolicyConfigMapKey struct {
	// Name is the name of the ConfigMap.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Key is the key in data of the ConfigMap. Its text may have 64 KiB.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// FailureMode specifies what happens when a policy cannot be evaluated.
//
// +kubebuilder:validation:Enum=Deny;Allow
type FailureMode string

const (
	// FailureModeDeny treats a failure as a denial. It is the default.
	FailureModeDeny FailureMode = "Deny"

	// FailureModeAllow allows a request that the policy could not evaluate.
	FailureModeAllow FailureMode = "Allow"
)

// PolicyMatch specifies to which requests a policy applies: those that satisfy all
// fields that are set.
//
// +kubebuilder:validation:XValidation:rule="!has(self.templates) || size(self.templates) == 0 || !has(self.kinds) || 'VirtualMachine' in self.kinds",message="templates are those of VirtualMachines, which kinds does not list",fieldPath=".templates"
type PolicyMatch struct {
	// Operations are the operations that the policy evaluates. On DELETE, input.object
	// is null and input.oldObject is the object that is deleted.
	//
	// +optional
	// +listType=set
	// +kubebuilder:default={CREATE,UPDATE}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Operations []PolicyOperation `json:"operations,omitempty"`

	// Kinds are the kinds that the policy evaluates.
	//
	// +optional
	// +listType=set
	// +kubebuilder:default={VirtualMachine}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Kinds []PolicyKind `json:"kinds,omitempty"`

	// NamespaceSelector limits the policy to namespaces by their labels.
	//
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// ObjectSelector limits the policy to objects by their labels. On UPDATE an object
	// is selected if its old or its new labels match, so that removing a label does not
	// evade the policy.
	//
	// +optional
	ObjectSelector *LabelSelector `json:"objectSelector,omitempty"`

	// Templates limits the policy to VirtualMachines of certain templates; at least
	// one entry must match. A VirtualMachine without a template matches none. Objects
	// of other kinds are not limited.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Templates []TemplateMatch `json:"templates,omitempty"`

	// Subjects limits the policy to requests of certain users, groups and service
	// accounts. The audit of stored objects ignores it, because stored objects do not
	// contain who wrote them.
	//
	// +optional
	Subjects *SubjectMatch `json:"subjects,omitempty"`
}

// PolicyOperation is an operation that a policy can evaluate.
//
// +kubebuilder:validation:Enum=CREATE;UPDATE;DELETE
type PolicyOperation string

// The operations that a policy can evaluate.
const (
	PolicyOperationCreate PolicyOperation = "CREATE"
	PolicyOperationUpdate PolicyOperation = "UPDATE"
	PolicyOperationDelete PolicyOperation = "DELETE"
)

// PolicyKind is a kind that a policy can evaluate.
//
// +kubebuilder:validation:Enum=VirtualMachine;VirtualMachineTemplate;VirtualMachineTemplateRequest;VirtualMachineTemplateImport;VirtualMachineTemplateExport
type PolicyKind string

// The kinds that a policy can evaluate: VirtualMachine of kubevirt.io, the others of
// template.kubevirt.io.
const (
	PolicyKindVirtualMachine                PolicyKind = "VirtualMachine"
	PolicyKindVirtualMachineTemplate        PolicyKind = "VirtualMachineTemplate"
	PolicyKindVirtualMachineTemplateRequest PolicyKind = "VirtualMachineTemplateRequest"
	PolicyKindVirtualMachineTemplateImport  PolicyKind = "VirtualMachineTemplateImport"
	PolicyKindVirtualMachineTemplateExport  PolicyKind = "VirtualMachineTemplateExport"
)

// TemplateMatch selects one template by name, templates by labels, or all templates of
// a namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !has(self.selector)",message="only one of name and selector may be given",fieldPath=".name"
type TemplateMatch struct {
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

	// Selector selects templates by their labels.
	//
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`
}

// SubjectMatch selects requests by the user that sends them.
type SubjectMatch struct {
	// Include are the subjects to which the policy applies; if empty, it applies to
	// all.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Include []Subject `json:"include,omitempty"`

	// Exclude are subjects to which the policy does not apply, even if include lists
	// them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Exclude []Subject `json:"exclude,omitempty"`
}
