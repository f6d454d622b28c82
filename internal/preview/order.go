package preview

import (
	"slices"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
)

// Denied reports whether any decision is a denial.
func Denied(decisions []v1beta1.Decision) bool {
	return slices.ContainsFunc(decisions, func(d v1beta1.Decision) bool { return d.Decision == v1beta1.EffectDeny })
}

// Sort puts denials first and allowing decisions last, and preserves the order otherwise.
func Sort(decisions []v1beta1.Decision) {
	rank := func(d v1beta1.Decision) int {
		return slices.Index([]v1beta1.Effect{v1beta1.EffectDeny, v1beta1.EffectWarn, v1beta1.EffectAllow}, d.Decision)
	}
	slices.SortStableFunc(decisions, func(a, b v1beta1.Decision) int { return rank(a) - rank(b) })
}
