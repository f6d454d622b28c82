package decision

import (
	"fmt"
	"strings"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// auditAnnotation is the key of the annotation in the API server's audit log, which precedes it by the name of the webhook.
const auditAnnotation = "policy-exceptions"

// exceptionWarnings returns a warning for each policy that is violated by an exception. It omits what the policy found and the
// reason of the exception.
func exceptionWarnings(d policyset.Decision) []string {
	var warnings []string
	for _, e := range firstPerPolicy(d.Excepted) {
		if e.Warns() {
			warnings = append(warnings, exceptionText(e))
		}
	}
	return warnings
}

// exceptionText states which exception allows a VirtualMachine to violate a policy, and until when.
func exceptionText(e policyset.Excepted) string {
	return fmt.Sprintf("policy %s is violated, which %s", e.Policy, e.Exception.Allows())
}

// exceptionAnnotations returns the annotation with all exceptions, as POLICY=EXCEPTION separated by commas; nil without any.
func exceptionAnnotations(d policyset.Decision) map[string]string {
	var used []string
	for _, e := range firstPerPolicy(d.Excepted) {
		used = append(used, e.Policy+"="+e.Exception.Name)
	}
	if len(used) == 0 {
		return nil
	}
	return map[string]string{auditAnnotation: strings.Join(used, ",")}
}

// firstPerPolicy returns the first item of each policy, which has the strictest enforcement: all items of a policy have the same exception.
func firstPerPolicy(excepted []policyset.Excepted) []policyset.Excepted {
	var first []policyset.Excepted
	seen := map[string]bool{}
	for _, e := range excepted {
		if !seen[e.Policy] {
			seen[e.Policy] = true
			first = append(first, e)
		}
	}
	return first
}
