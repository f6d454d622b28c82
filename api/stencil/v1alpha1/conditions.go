package v1alpha1

// LabelGoverned is on every Namespace once Stencil has decided whether
// TemplateApprovals select it, and says what they do there. A Namespace without it
// is undecided. Stencil's manager writes it, and an admission policy protects it.
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
// holds what admission policies need of the TemplateApprovals that select it:
// 1;NAMES;EXEMPT;APPROVED. NAMES are those of approvals, for messages. EXEMPT has a
// section of exempt subjects for each approval that denies, APPROVED sections of
// templates as NAMESPACE/NAME or NAMESPACE/*, each followed by > and the subjects
// whom they are approved for, if not for everyone. Sections are separated by |,
// their items by commas. A subject is u:USERNAME or g:GROUP, with the characters
// %,;|> percent-encoded. Without a readable annotation everything is denied.
// Stencil's manager writes it, and an admission policy protects it.
const AnnotationApprovals = "stencil.kubevirt.io/approvals"

// ApprovalIndexName is the name of the ConfigMap in Stencil's namespace that holds
// what TemplateApprovals select namespaces by, for admission policies about
// undecided namespaces and about changes of labels.
const ApprovalIndexName = "stencil-approval-index"

// Reasons of the condition Active of a TemplateApproval, which is true while every
// Namespace that it selects carries its present generation. Until then what a
// Namespace carries is enforced there.
const (
	// ReasonWriting is the reason of an approval that some namespaces do not carry
	// yet.
	ReasonWriting = "WritingNamespaces"

	// ReasonTooLarge is the reason of an approval that the annotation of a namespace
	// has no room for. The admission policies approve nothing by it there.
	ReasonTooLarge = "TooLarge"
)

// ConditionReady is the type of the condition of a TemplateApproval that is true
// while it is enforced as it is written.
const ConditionReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonEnforced is the reason of an approval that is enforced and lists at
	// least one template that exists.
	ReasonEnforced = "Enforced"

	// ReasonInvalidConfiguration is the reason of an approval that cannot be
	// understood. It covers its namespaces and approves nothing.
	ReasonInvalidConfiguration = "InvalidConfiguration"

	// ReasonNoNamespaces is the reason of an approval that covers no namespace
	// that exists.
	ReasonNoNamespaces = "NoNamespaces"

	// ReasonNoTemplates is the reason of an approval that lists no template that
	// exists, so that nothing can be created by it.
	ReasonNoTemplates = "NoTemplates"

	// ReasonRequiredParameterClosed is the reason of an approval that lists a
	// template and not its required parameter, which has no default and no
	// generator. No virtual machine can be created from that template by it.
	ReasonRequiredParameterClosed = "RequiredParameterClosed"

	// ReasonAuditFailed is the reason of an approval whose virtual machines could
	// not be counted.
	ReasonAuditFailed = "AuditFailed"
)

// ConditionExemptUsersFound is the type of the condition of a TemplateApproval that
// is true while every name of an exempt user in Stencil's configuration is that of
// a controller of Kubernetes, of the installed KubeVirt or of the installed CDI, or
// of one of theirs that is not installed. It is the same for all approvals.
const ConditionExemptUsersFound = "ExemptUsersFound"

// Reasons of the condition ExemptUsersFound.
const (
	// ReasonFound is the reason while it is true.
	ReasonFound = "Found"

	// ReasonNotInstalled is the reason when a name is that of no installed
	// controller. It exempts no user.
	ReasonNotInstalled = "NotInstalled"
)

// MaxViolations is how many violations the status of an approval lists. The
// count beside them is not limited.
const MaxViolations = 20
