package input

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// AddUnresolved adds to a decision that the instance type or preference of the
// VirtualMachine was not resolved: this is a failure of each policy, and the failure
// modes decide. Existing findings are retained.
func AddUnresolved(d *policyset.Decision, entries []policyset.Entry, unresolved field.ErrorList) {
	for _, cause := range unresolved {
		for i := range entries {
			entry := &entries[i]
			if entry.FailureMode == policyset.FailureModeAllow {
				continue
			}
			metadata := entry.Policy.Metadata()
			violation := policyset.Violation{
				Policy:   entry.Policy.Name(),
				Title:    metadata.Title,
				Severity: metadata.Severity,
				Finding:  rego.Finding{Message: "could not be evaluated: " + cause.ErrorBody(), Field: cause.Field},
				Rule:     policyset.RuleDeny,
				Failure:  true,
			}
			switch entry.Enforcement {
			case policyset.EnforcementAudit:
				d.Audited = append(d.Audited, violation)
			case policyset.EnforcementWarn:
				d.Warnings = append(d.Warnings, violation)
			default:
				d.Denials = append(d.Denials, violation)
			}
		}
	}
}
