package approval

import (
	"cmp"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Question is a request, or a stored VirtualMachine, to evaluate.
type Question struct {
	// User is the requesting user.
	User authenticationv1.UserInfo
	// Anyone is for audits. A stored VirtualMachine has no requesting user, so it is evaluated for a user that every approval serves and none
	// exempts.
	Anyone bool
	// Template is the one from which the VirtualMachine is, or was, rendered.
	Template Template
	// Values of the parameters, nil where they are not evaluated.
	Values map[string]string
	// Sensitive reports whether a parameter is sensitive. When nil, all are.
	Sensitive func(name string) bool
	// Declared are the parameters of the template. When nil, values of parameters that
	// an approval does not list are not evaluated.
	Declared Declarations
	// Name of the VirtualMachine, empty where the template makes it.
	Name string
	// Given are the user-specified values, by annotations or by the name of the
	// VirtualMachine.
	Given map[string]string
	// Sources are what the disks come from. When nil, they are not evaluated; see
	// PinsSources.
	Sources []DiskSource
	// Objects are the objects that are created with the VirtualMachine. When nil,
	// they are not evaluated; see LimitsObjects.
	Objects []Object
	// Touched are the places that the user sets or changes.
	Touched []Path
	// Match, when set, compares the VirtualMachine with its template for one approval, except at the overrides of the approval. It returns the values
	// of the parameters, which are evaluated instead of Values, and the differences.
	Match func(*Approval) (values map[string]string, differences []Objection)
	// Instance, when set, returns a VirtualMachine that was sent with a complete spec, as one approval evaluates it. It takes the place of Values, Given
	// and Touched.
	Instance func(*Approval) Instance
	// Labelled is set when the VirtualMachine refers to its template by labels only. Then an approval that does not accept them is not satisfied.
	Labelled bool
	// Update is set when the VirtualMachine is stored already. Then a request that touches nothing is allowed in any case, unless it has Values, and so
	// is one that touches only labels and annotations of a VirtualMachine without a template, which existed before its namespace was governed.
	Update bool
}

// Instance is a VirtualMachine with a complete spec, compared with its template.
type Instance struct {
	// Values of the parameters that the VirtualMachine shows or that its annotations give, Given those that the user chose: all of them,
	// except those that the template may have generated.
	Values, Given map[string]string
	// Touched are the places where the VirtualMachine differs from what the template makes of these values.
	Touched []Path
	// Differences are values that the template does not permit.
	Differences []Objection
}

// Decision is the result of an evaluation.
type Decision struct {
	// Governed reports whether any approval selects the namespace.
	Governed bool
	// Allowed reports whether the VirtualMachine satisfies an approval, or does not need to.
	Allowed bool
	// Exempt reports whether the request is allowed because every approval exempts the user.
	Exempt bool
	// Enforcement is the strictest of the approvals that do not exempt the user, also when the request is allowed. It is empty where the namespace is
	// not governed.
	Enforcement v1alpha1.Enforcement
	// By is the name of the satisfied approval, the first one when ordered by name.
	By string
	// Objections are what is wrong when no approval is satisfied. If some approvals serve the user and approve the template, only the objections of
	// these are included.
	Objections []Objection
}

// Denied reports whether the request must be denied.
func (d Decision) Denied() bool { return !d.Allowed && d.Enforcement == v1alpha1.EnforcementDeny }

// Causes returns the objections as causes of a denial.
func (d Decision) Causes() field.ErrorList {
	var causes field.ErrorList
	for _, objection := range d.Objections {
		causes = append(causes, objection.Cause())
	}
	return causes
}

// Evaluate decides a question with the approvals that select the namespace of the VirtualMachine.
func Evaluate(approvals []*Approval, q Question) Decision {
	if len(approvals) == 0 {
		return Decision{Allowed: true}
	}
	d := Decision{Governed: true, Enforcement: strictest(notExempting(approvals, q))}
	if d.Exempt = !q.Anyone && exempt(approvals, q.User); d.Exempt || q.Update && q.idle() {
		d.Allowed = true
		return d
	}
	var near, far []Objection
	for _, a := range byName(approvals) {
		objections, candidate := a.evaluate(q)
		switch {
		case len(objections) == 0:
			d.Allowed, d.By = true, a.name
			return d
		case candidate:
			near = append(near, objections...)
		default:
			far = append(far, objections...)
		}
	}
	if d.Objections = near; near == nil {
		d.Objections = far
	}
	return d
}

// idle reports whether an update changes nothing that approvals evaluate.
func (q Question) idle() bool {
	return q.Values == nil && !slices.ContainsFunc(q.Touched, func(path Path) bool { return q.Template.Name != "" || path[0] != Field("metadata") })
}

// Exempt reports whether at least one approval selects a namespace and each of these approvals exempts the user.
func Exempt(approvals []*Approval, user authenticationv1.UserInfo) bool {
	return len(approvals) > 0 && exempt(approvals, user)
}

func exempt(approvals []*Approval, user authenticationv1.UserInfo) bool {
	return !slices.ContainsFunc(approvals, func(a *Approval) bool { return !a.Exempts(user) })
}

// notExempting returns the approvals that do not exempt the user, or all of them when each does, so that the enforcement of the namespace is defined.
func notExempting(approvals []*Approval, q Question) []*Approval {
	if q.Anyone || exempt(approvals, q.User) || !slices.ContainsFunc(approvals, func(a *Approval) bool { return a.Exempts(q.User) }) {
		return approvals
	}
	return slices.DeleteFunc(slices.Clone(approvals), func(a *Approval) bool { return a.Exempts(q.User) })
}

// NotExempting returns the approvals of a namespace that do not exempt a user, all of them
// when each does.
func NotExempting(approvals []*Approval, user authenticationv1.UserInfo) []*Approval {
	return notExempting(approvals, Question{User: user})
}

// Denies reports whether an approval of a namespace denies.
func Denies(approvals []*Approval) bool {
	return strictest(approvals) == v1alpha1.EnforcementDeny
}

func strictest(approvals []*Approval) v1alpha1.Enforcement {
	strict := v1alpha1.EnforcementAudit
	for _, a := range approvals {
		switch a.enforcement {
		case v1alpha1.EnforcementDeny:
			return v1alpha1.EnforcementDeny
		case v1alpha1.EnforcementWarn:
			strict = v1alpha1.EnforcementWarn
		}
	}
	return strict
}

func byName(approvals []*Approval) []*Approval {
	compare := func(a, b *Approval) int { return cmp.Compare(a.name, b.name) }
	if slices.IsSortedFunc(approvals, compare) {
		return approvals
	}
	sorted := slices.Clone(approvals)
	slices.SortFunc(sorted, compare)
	return sorted
}
