package v1alpha1

// LabelGoverned is the label of a Namespace that holds the strictest enforcement
// of the TemplateApprovals that select it. A Namespace without the label is
// undecided. Stencil's manager writes it, and an admission policy protects it.
const LabelGoverned = "stencil.kubevirt.io/governed"

// Values of LabelGoverned: the strictest enforcement of the TemplateApprovals that
// select the Namespace, or GovernedFalse when none does.
const (
	GovernedDeny  = "true"
	GovernedWarn  = "warn"
	GovernedAudit = "audit"
	GovernedFalse = "false"
)

// AnnotationApprovals is on every Namespace with the label value GovernedDeny, and
// holds the parts of the TemplateApprovals that select it which admission policies
// need: 1;NAMES;EXEMPT;APPROVED. NAMES are the names of approvals, for messages.
// EXEMPT has a section of exempt subjects for each approval that denies, APPROVED
// sections of templates as NAMESPACE/NAME or NAMESPACE/*, each followed by > and
// the subjects that may use them, if not all users may. Sections are separated by
// |, their items by commas. A subject is u:USERNAME or g:GROUP, with the characters
// %,;|> percent-encoded. Without a readable annotation everything is denied.
// Stencil's manager writes it, and an admission policy protects it.
const AnnotationApprovals = "stencil.kubevirt.io/approvals"

// ApprovalIndexName is the name of the ConfigMap in Stencil's namespace that holds
// the names and labels by which TemplateApprovals select namespaces. The admission
// policies for undecided namespaces and for changes of labels read it.
const ApprovalIndexName = "stencil-approval-index"

// Reasons of the condition Active of a TemplateApproval, which is true while the
// label and annotation of every Namespace that it selects have its current
// generation. Until then the previous label and annotation are enforced there.
const (
	// ReasonWriting is the reason of an approval that is not yet written to some of its
	// namespaces.
	ReasonWriting = "WritingNamespaces"

	// ReasonTooLarge is the reason of an approval that does not fit into the annotation
	// of a namespace. The admission policies approve nothing by it there.
	ReasonTooLarge = "TooLarge"
)

// ConditionReady is the type of the condition of a TemplateApproval that is true while
// its spec is enforced.
const ConditionReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonEnforced is the reason of an approval that is enforced and lists at
	// least one template that exists.
	ReasonEnforced = "Enforced"

	// ReasonInvalidConfiguration is the reason of an invalid approval. It selects its
	// namespaces and approves nothing.
	ReasonInvalidConfiguration = "InvalidConfiguration"

	// ReasonNoNamespaces is the reason of an approval that selects no existing
	// namespace.
	ReasonNoNamespaces = "NoNamespaces"

	// ReasonNoTemplates is the reason of an approval that lists no existing template,
	// so that it permits no creation.
	ReasonNoTemplates = "NoTemplates"

	// ReasonRequiredParameterClosed is the reason of an approval that lists a
	// template but not one of its required parameters, which has neither
	// default nor generator. The approval permits no VirtualMachine of that
	// template.
	ReasonRequiredParameterClosed = "RequiredParameterClosed"

	// ReasonAuditFailed is the reason when the VirtualMachines of an approval could not
	// be counted.
	ReasonAuditFailed = "AuditFailed"
)

// ConditionExemptUsersFound is the type of the condition of a TemplateApproval that
// is true while every exempt user in Stencil's configuration is a controller of
// Kubernetes, of the installed KubeVirt or of the installed CDI, or one of their
// controllers that is not installed. It is the same for all approvals.
const ConditionExemptUsersFound = "ExemptUsersFound"

// Reasons of the condition ExemptUsersFound.
const (
	// ReasonFound is the reason while the condition is true.
	ReasonFound = "Found"

	// ReasonNotInstalled is the reason when a name belongs to no installed controller.
	// The name exempts no user.
	ReasonNotInstalled = "NotInstalled"
)

// ConditionPolicyCompliantForAllValues is the type of the condition of a
// TemplateApproval that is true while no VirtualMachinePolicy denies a VirtualMachine
// that the approval approves, with any values of the templates' parameters that it
// allows. It is set on approvals of templates to which at least one policy with
// enforcement Deny applies. Its reasons are those of the condition of this type of a
// VirtualMachineTemplate.
const ConditionPolicyCompliantForAllValues = "PolicyCompliantForAllValues"

// MaxViolations is the maximum number of violations that the status of an approval
// lists. The count beside them is not limited.
const MaxViolations = 20
