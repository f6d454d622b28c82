package v1alpha1

// LabelGoverned is on every Namespace that a TemplateApproval covers, with the
// value LabelGovernedValue. It only decides which requests are sent to the
// webhooks that answer helpfully; nothing is allowed or refused because of it.
const LabelGoverned = "stencil.kubevirt.io/governed"

// LabelGovernedValue is the value of LabelGoverned.
const LabelGovernedValue = "true"

// AnnotationApprovedTemplates is on every Namespace that more than one
// TemplateApproval covers, and lists what any of them approves there, as
// NAMESPACE/NAME or NAMESPACE/*, separated by commas. An admission policy, which sees
// one approval at a time, reads it before it refuses a template that this approval
// does not list. Stencil keeps it, and a policy protects it.
const AnnotationApprovedTemplates = "stencil.kubevirt.io/approved-templates"

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

	// ReasonAuditFailed is the reason of an approval whose virtual machines could
	// not be counted.
	ReasonAuditFailed = "AuditFailed"
)

// MaxViolations is how many violations the status of an approval lists. The
// count beside them is not limited.
const MaxViolations = 20
