package approval

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Limits of the annotation of a namespace. The annotations of an object share 256 KiB, and an expression of an admission policy has a budget: a user
// can have a thousand groups, and the policy searches for each.
const (
	maxStateBytes    = 64 << 10
	maxStateSubjects = 512
	// maxStateNames is how many approvals a message of a policy names.
	maxStateNames = 3
)

// NamespaceState is the state of the approvals that select a namespace, as stored in the namespace; see v1alpha1.LabelGoverned and
// v1alpha1.AnnotationApprovals.
type NamespaceState struct {
	// Governed is the value of the label.
	Governed string
	// Approvals is the value of the annotation, empty when there has to be none.
	Approvals string
	// Omitted are the approvals that the annotation has no room for. They count in it
	// as approvals that approve nothing and exempt no user.
	Omitted []*Approval
}

// StateOf returns the state of a namespace that these approvals select. When there are too many for the annotation, older ones come first.
func StateOf(approvals []*Approval) NamespaceState {
	if len(approvals) == 0 {
		return NamespaceState{Governed: v1alpha1.GovernedFalse}
	}
	switch strictest(approvals) {
	case v1alpha1.EnforcementWarn:
		return NamespaceState{Governed: v1alpha1.GovernedWarn}
	case v1alpha1.EnforcementAudit:
		return NamespaceState{Governed: v1alpha1.GovernedAudit}
	}
	state := NamespaceState{Governed: v1alpha1.GovernedDeny}
	if state.Approvals = encodeState(approvals, approvals); state.Approvals != "" {
		return state
	}
	var included []*Approval
	oldest := slices.SortedFunc(slices.Values(approvals), func(a, b *Approval) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	for _, a := range oldest {
		next := append(slices.Clone(included), a)
		// While an approval is omitted, no user is exempt. The exempt subjects of the included ones have to fit nevertheless, or a younger approval
		// would decide whether an older one is included.
		if encoded := encodeState(approvals, next); encoded != "" && encodeState(next, next) != "" {
			included, state.Approvals = next, encoded
			continue
		}
		state.Omitted = append(state.Omitted, a)
	}
	if len(included) == 0 {
		state.Approvals = encodeState(approvals, nil)
	}
	return state
}

// encodeState returns the annotation: the approvals that are not included exempt no user and approve nothing. It returns "" when that exceeds a
// limit.
func encodeState(approvals, included []*Approval) string {
	exempt, exempted := encodeExempt(approvals, included)
	approved, served := encodeApproved(included)
	encoded := "1;" + encodeNames(approvals) + ";" + exempt + ";" + approved
	if len(encoded) > maxStateBytes || exempted > maxStateSubjects || served > maxStateSubjects {
		return ""
	}
	return encoded
}

func encodeNames(approvals []*Approval) string {
	var names []string
	for _, a := range approvals {
		names = append(names, a.name)
	}
	slices.Sort(names)
	if more := len(names) - maxStateNames; more > 0 {
		return strings.Join(names[:maxStateNames], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}

// encodeExempt returns the subjects that each approval that denies exempts, and their number. If one of them exempts no user, no subject is exempt.
func encodeExempt(approvals, included []*Approval) (encoded string, subjects int) {
	var sections []string
	for _, a := range approvals {
		if a.enforcement != v1alpha1.EnforcementDeny {
			continue
		}
		listed := a.exempted.encode()
		if len(listed) == 0 || !slices.Contains(included, a) {
			return "", 0
		}
		if section := strings.Join(listed, ","); !slices.Contains(sections, section) {
			sections, subjects = append(sections, section), subjects+len(listed)
		}
	}
	slices.Sort(sections)
	return strings.Join(sections, "|"), subjects
}

// encodeApproved returns the templates, together where they are approved for the
// same subjects, and how many subjects are listed.
func encodeApproved(included []*Approval) (encoded string, subjects int) {
	bySubjects := map[string][]string{}
	for _, a := range included {
		served := a.served.encode()
		if !a.everyone && len(served) == 0 {
			continue
		}
		key := strings.Join(served, ",")
		if _, found := bySubjects[key]; !found {
			subjects += len(served)
		}
		bySubjects[key] = append(bySubjects[key], a.Listed()...)
	}
	var sections []string
	for served, templates := range bySubjects {
		if len(templates) == 0 {
			continue
		}
		slices.Sort(templates)
		section := strings.Join(slices.Compact(templates), ",")
		if served != "" {
			section += ">" + served
		}
		sections = append(sections, section)
	}
	slices.Sort(sections)
	return strings.Join(sections, "|"), subjects
}

var stateEscapes = strings.NewReplacer("%", "%25", ",", "%2C", ";", "%3B", "|", "%7C", ">", "%3E")

// encode returns the subjects as the annotation writes them, sorted.
func (s subjects) encode() []string {
	var encoded []string
	for user := range s.users {
		encoded = append(encoded, "u:"+stateEscapes.Replace(user))
	}
	for group := range s.groups {
		encoded = append(encoded, "g:"+stateEscapes.Replace(group))
	}
	slices.Sort(encoded)
	return encoded
}
