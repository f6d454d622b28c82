package audit

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/excerpt"
)

// Rules are what a machine can violate. A Report names them.
const (
	ruleNoTemplate          = "NoTemplate"
	ruleTemplateGone        = "TemplateGone"
	ruleTemplateInvalid     = "TemplateInvalid"
	ruleTemplateNotApproved = "TemplateNotApproved"
	ruleTemplateChanged     = "TemplateChanged"
	ruleParameterNotAllowed = "ParameterNotAllowed"
	ruleDifferent           = "DifferentFromTemplate"
	ruleMoreThanTemplate    = "MoreThanTemplate"
	ruleExistingDisk        = "ExistingDisk"
	ruleInstanceDifferent   = "InstanceDifferent"
	ruleLauncherDifferent   = "LauncherDifferent"
	ruleForeignOwner        = "ForeignOwner"
	ruleSizeDifferent       = "SizeDifferent"
	ruleNoMachine           = "NoVirtualMachine"
)

// ruleClosedParameter is what a machine is warned of that satisfies an approval but for parameters which the approval does not
// list. In the next release it is a violation.
const ruleClosedParameter = approval.ReasonClosedParameter

const (
	// maximumCause is how many bytes a cause has, as the definition of TemplateApproval limits it.
	maximumCause = 1024
	// maximumPaths is how many differing fields, or values that are not allowed, a cause names.
	maximumPaths = 5
)

// cause tells why a machine satisfies no approval.
type cause struct {
	// rule is what it violates.
	rule string
	// approval is the one that the message is about.
	approval string
	// message has at most maximumCause bytes.
	message string
}

func newCause(rule, approval, format string, arguments ...any) *cause {
	return &cause{rule: rule, approval: approval, message: excerpt.Of(fmt.Sprintf(format, arguments...), maximumCause)}
}

// parameterPrefix is what an objection's field begins with when it is about a parameter's value.
const parameterPrefix = "parameters["

// enumerate joins the first entries and counts the rest.
func enumerate(entries []string, noun string) string {
	if more := len(entries) - maximumPaths; more > 0 {
		return fmt.Sprintf("%s and %d more %s", strings.Join(entries[:maximumPaths], ", "), more, noun)
	}
	return strings.Join(entries, ", ")
}
