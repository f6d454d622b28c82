package evaluation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/rego"
)

// Exception allows certain VirtualMachines to violate certain policies until a time. It
// is immutable and safe for concurrent use.
type Exception struct {
	// Name is the name of the PolicyException, Reason its reason.
	Name, Reason string
	// Expires is when the exception ends: it does not apply at this time.
	Expires time.Time

	policies   []string
	namespaces map[string]bool
	names      map[string]bool
	prefixes   []string
	subjects   *subjects // nil: all
}

// NewException returns the exception of a PolicyException.
func NewException(object *v1alpha1.PolicyException) *Exception {
	e := &Exception{
		Name:       object.Name,
		Reason:     object.Spec.Reason,
		Expires:    object.Spec.ExpiresAt.Time,
		policies:   slices.Clone(object.Spec.Policies),
		namespaces: map[string]bool{},
		names:      map[string]bool{},
		subjects:   newSubjects(object.Spec.Subjects),
	}
	for _, namespace := range object.Spec.Namespaces {
		e.namespaces[namespace] = true
	}
	for _, name := range object.Spec.Names {
		if prefix, is := strings.CutSuffix(name, "*"); is {
			e.prefixes = append(e.prefixes, prefix)
		} else {
			e.names[name] = true
		}
	}
	return e
}

// Active reports whether the exception has not ended.
func (e *Exception) Active(now time.Time) bool { return now.Before(e.Expires) }

// End returns when the exception ends, as users read it.
func (e *Exception) End() string { return e.Expires.UTC().Format(time.RFC3339) }

// Allows states which exception it is, and until when it allows a violation.
func (e *Exception) Allows() string {
	return fmt.Sprintf("PolicyException %s allows until %s", e.Name, e.End())
}

// Policies returns the names of the policies. The caller must not modify the slice.
func (e *Exception) Policies() []string { return e.policies }

// ForSubjects reports whether the exception applies only to requests of certain subjects.
func (e *Exception) ForSubjects() bool { return e.subjects != nil }

// VirtualMachine is a VirtualMachine that a request creates or updates, or a stored one.
type VirtualMachine struct {
	Namespace, Name string
	// User is the user that sends the request; nil for a stored VirtualMachine. Exceptions
	// with subjects do not apply without a user.
	User *rego.UserInfo
}

// covers reports whether the exception applies to a VirtualMachine. One without a name
// has no exceptions.
func (e *Exception) covers(vm *VirtualMachine) bool {
	if vm.Name == "" || !e.namespaces[vm.Namespace] {
		return false
	}
	if !e.names[vm.Name] && !slices.ContainsFunc(e.prefixes, func(prefix string) bool { return strings.HasPrefix(vm.Name, prefix) }) {
		return false
	}
	return e.subjects == nil || vm.User != nil && e.subjects.contain(vm.User)
}

// Exceptions is a snapshot of all exceptions. It is immutable and safe for concurrent
// use; nil and the zero value are empty.
type Exceptions struct {
	all      []*Exception
	byPolicy map[string][]*Exception
}

// NewExceptions returns a snapshot of exceptions.
func NewExceptions(list []*Exception) *Exceptions {
	x := &Exceptions{all: slices.Clone(list), byPolicy: map[string][]*Exception{}}
	// Of several exceptions for a violation, the one that ends last is used.
	slices.SortFunc(x.all, func(a, b *Exception) int {
		if order := b.Expires.Compare(a.Expires); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, one := range x.all {
		for _, policy := range one.policies {
			x.byPolicy[policy] = append(x.byPolicy[policy], one)
		}
	}
	return x
}

// Next returns the earliest time after now at which an exception ends; zero if there is
// none.
func (x *Exceptions) Next(now time.Time) time.Time {
	var next time.Time
	if x == nil {
		return next
	}
	for _, one := range x.all {
		if one.Active(now) {
			next = one.Expires // They are sorted: the last active one ends first.
		}
	}
	return next
}

// of returns the exception for violations of a policy by a VirtualMachine, nil if there
// is none.
func (x *Exceptions) of(policy string, vm *VirtualMachine, now time.Time) *Exception {
	for _, one := range x.byPolicy[policy] {
		if !one.Active(now) {
			return nil // The others have ended earlier.
		}
		if one.covers(vm) {
			return one
		}
	}
	return nil
}

// Excepted is a violation that an exception allows.
type Excepted struct {
	Violation
	// Enforcement is the effect that the violation would have.
	Enforcement Enforcement
	Exception   *Exception
}

// Warns reports whether the user receives a warning: the violation would have denied the
// request, or warned.
func (e Excepted) Warns() bool { return e.Enforcement != EnforcementAudit }

// Except moves the violations for which there is an exception to Decision.Excepted.
// Failures of policies have no exceptions: what such a policy would find is unknown.
func (x *Exceptions) Except(d *Decision, vm VirtualMachine, now time.Time) {
	if x == nil || len(x.byPolicy) == 0 {
		return
	}
	d.Denials = x.except(d, d.Denials, EnforcementDeny, &vm, now)
	d.Warnings = x.except(d, d.Warnings, EnforcementWarn, &vm, now)
	d.Audited = x.except(d, d.Audited, EnforcementAudit, &vm, now)
}

// except returns the violations without an exception.
func (x *Exceptions) except(d *Decision, violations []Violation, effect Enforcement, vm *VirtualMachine, now time.Time) []Violation {
	var remaining []Violation
	for _, v := range violations {
		if !v.Failure {
			if exception := x.of(v.Policy, vm, now); exception != nil {
				d.Excepted = append(d.Excepted, Excepted{v, effect, exception})
				continue
			}
		}
		remaining = append(remaining, v)
	}
	return remaining
}
