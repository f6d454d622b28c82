package audit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/vmstencil/stencil/approval"
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
)

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
	return &cause{rule: rule, approval: approval, message: shorten(fmt.Sprintf(format, arguments...), maximumCause)}
}

// shorten cuts a text that has more bytes than it may have.
func shorten(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
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

// objected sorts objections into paths at which the machine differs and values that are not allowed.
func objected(objections []approval.Objection) (paths, values []string) {
	for _, o := range objections {
		if strings.HasPrefix(o.Field, parameterPrefix) {
			values = append(values, o.Field+": "+o.Message)
		} else {
			paths = append(paths, o.Field)
		}
	}
	return paths, values
}
