package policies

import (
	"fmt"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/excerpt"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// missingData returns a warning for each value that a version reads and that does not exist. It is no reason to reject the policy: the ConfigMap may be
// in the same files, and be stored after it.
func missingData(entry *policyset.Entry, enforcing bool, mode v1alpha1.FailureMode) []string {
	consequence := "and denies every request that it selects"
	switch {
	case mode == v1alpha1.FailureModeAllow:
		consequence = "and allows every request that it selects"
	case !enforcing:
		consequence = "and finds nothing else"
	}
	var missing []string
	for _, err := range policyset.MissingData(entry.Policy) {
		missing = append(missing, excerpt.Of(fmt.Sprintf("%v. Until then the policy cannot be evaluated, %s", err, consequence), maximumWarning))
	}
	return missing
}
