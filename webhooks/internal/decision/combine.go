package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/template/validations/vmrules"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

const (
	// maximumLines is the number of denials that a response lists; the others are counted.
	maximumLines = 64
	// maximumNames is the number of policies with the same message that one line names.
	maximumNames = 5
)

// Decisions holds all decisions about one request.
type Decisions struct {
	Approvals approval.Decision
	Policies  policyset.Decision
	// Rules is the decision of the rules of the VM and of its template.
	Rules vmrules.Decision
}

// Combine returns the response for all decisions: a denial with every objection of approvals, policies and rules, or an
// admission with all warnings. Notes are further lines of a denial by policies or rules.
func Combine(request admission.Request, all Decisions, notes ...string) admission.Response {
	v, d := all.Approvals, all.Policies
	// A rule about a size that cannot be resolved here was not evaluated, and therefore denies.
	rules := append(slices.Clip(all.Rules.Denials), all.Rules.Unevaluated...)
	warnings := append(append(Warnings(v), policyWarnings(d)...), ruleWarnings(all.Rules)...)
	switch {
	case len(d.Denials)+len(rules) == 0 && v.Denied():
		return Deny(request, v.Objections).WithWarnings(warnings...)
	case len(d.Denials)+len(rules) == 0:
		response := admission.Allowed("").WithWarnings(warnings...)
		response.AuditAnnotations = exceptionAnnotations(d)
		return response
	}
	var lines []string
	var causes []metav1.StatusCause
	if v.Denied() {
		why, from := unapproved(request, v.Objections)
		lines, causes = append(lines, why), append(causes, from...)
	}
	denials := grouped(d.Denials)
	for i, denial := range denials {
		if i == maximumLines {
			lines = append(lines, fmt.Sprintf("and %d more", len(denials)-i))
			break
		}
		lines = append(lines, denial.line())
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeForbidden, Field: oneLine(denial.Field), Message: denial.text()})
	}
	for i, rule := range rules {
		if i == maximumLines {
			lines = append(lines, fmt.Sprintf("and %d more rules", len(rules)-i))
			break
		}
		lines = append(lines, placed(oneLine(rule.String()), rule.Field))
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeForbidden, Field: oneLine(rule.Field), Message: oneLine(rule.String())})
	}
	lines = append(lines, notes...)
	why := lines[0]
	if len(lines) > 1 {
		why = "\n- " + strings.Join(lines, "\n- ")
	}
	resource := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
	status := apierrors.NewForbidden(resource, request.Name, errors.New(why)).Status()
	status.Details.Causes = causes
	return deny.With(status).WithWarnings(warnings...)
}

// Unavailable denies a request that cannot be evaluated at the moment.
func Unavailable(why string) admission.Response {
	status := apierrors.NewServiceUnavailable(why + "; try again in a moment").Status()
	return deny.With(status)
}

func policyWarnings(d policyset.Decision) []string {
	var warnings []string
	for _, warning := range grouped(d.Warnings) {
		warnings = append(warnings, warning.warning())
	}
	warnings = append(warnings, exceptionWarnings(d)...)
	return warnings[:min(len(warnings), maximumLines)]
}

func ruleWarnings(v vmrules.Decision) []string {
	var warnings []string
	for _, found := range v.Warnings {
		warnings = append(warnings, placed(oneLine(found.String()), found.Field))
	}
	return warnings[:min(len(warnings), maximumLines)]
}

// placed appends the field to a message.
func placed(text, field string) string { return text + " at " + oneLine(field) }

// group is a violation, and the policies that could not be evaluated for the same reason.
type group struct {
	policyset.Violation
	policies []string
}

// grouped merges the failures of policies that could not be evaluated for the same reason.
func grouped(violations []policyset.Violation) []*group {
	var groups []*group
	for _, v := range violations {
		if like := alike(groups, v); like != nil {
			like.policies = append(like.policies, v.Policy)
			continue
		}
		groups = append(groups, &group{v, []string{v.Policy}})
	}
	return groups
}

func alike(groups []*group, v policyset.Violation) *group {
	if !v.Failure {
		return nil
	}
	for _, g := range groups {
		if g.Failure && g.Finding == v.Finding {
			return g
		}
	}
	return nil
}

// who returns the names of the policies.
func (g *group) who() string {
	switch more := len(g.policies) - maximumNames; {
	case len(g.policies) == 1:
		return "policy " + g.Policy
	case more > 0:
		return fmt.Sprintf("policies %s and %d more", strings.Join(g.policies[:maximumNames], ", "), more)
	default:
		return "policies " + strings.Join(g.policies, ", ")
	}
}

// text returns the message without the field.
func (g *group) text() string { return g.format(false, true) }

// line returns a line for the message of a denial.
func (g *group) line() string { return g.format(true, true) }

func (g *group) warning() string { return g.format(true, false) }

func (g *group) format(field, severity bool) string {
	var b strings.Builder
	b.WriteString(g.who())
	switch {
	case g.Failure:
		b.WriteString(" ")
	case severity:
		fmt.Fprintf(&b, " (%s): ", g.Severity)
	default:
		b.WriteString(": ")
	}
	b.WriteString(oneLine(g.Message))
	if field && g.Field != "" {
		b.WriteString(" at " + oneLine(g.Field))
	}
	if g.Fix != "" {
		b.WriteString("; fix: " + oneLine(g.Fix))
	}
	return b.String()
}

// oneLine replaces control characters, so that the message of a policy cannot imitate further lines of the response.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
