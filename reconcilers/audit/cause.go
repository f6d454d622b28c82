package audit

import (
	"fmt"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/excerpt"
)

// Rules that a VM can violate. A Report names them.
const (
	ruleNoTemplate          = "NoTemplate"
	ruleTemplateNotFound    = "TemplateGone"
	ruleTemplateInvalid     = "TemplateInvalid"
	ruleTemplateNotApproved = "TemplateNotApproved"
	ruleTemplateChanged     = "TemplateChanged"
	ruleParameterNotAllowed = "ParameterNotAllowed"
	ruleDifferent           = "DifferentFromTemplate"
	ruleMoreThanTemplate    = "MoreThanTemplate"
	ruleObjectNotAllowed    = "ObjectNotAllowed"
	ruleExistingDisk        = "ExistingDisk"
	ruleInstanceDifferent   = "InstanceDifferent"
	ruleLauncherDifferent   = "LauncherDifferent"
	ruleForeignOwner        = "ForeignOwner"
	ruleSizeDifferent       = "SizeDifferent"
	ruleNoVM                = "NoVirtualMachine"
)

// ruleClosedParameter is the rule of warnings about VMs that satisfy an approval except for parameters that the approval does not list. In
// the next release it is a violation.
const ruleClosedParameter = approval.ReasonClosedParameter

const (
	// maximumCause is the maximum length of a cause in bytes, as limited by the definition of TemplateApproval.
	maximumCause = 1024
	// maximumPaths is the maximum number of differing fields, or of values that are not allowed, that a cause names.
	maximumPaths = 5
)

// cause is the reason why a VM satisfies no approval.
type cause struct {
	// rule is the rule that the VM violates.
	rule string
	// approval is the one that the message is about.
	approval string
	// message has at most maximumCause bytes.
	message string
}

func newCause(rule, approval, format string, arguments ...any) *cause {
	return &cause{rule: rule, approval: approval, message: excerpt.Of(fmt.Sprintf(format, arguments...), maximumCause)}
}

// parameterPrefix is the prefix of an objection's field when the objection is about the value of a parameter.
const parameterPrefix = "parameters["
