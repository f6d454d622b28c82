package policies

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// ledger stores the active version of each policy. It is not safe for concurrent use.
type ledger struct{ policies map[string]*record }

// record is the state of one policy.
type record struct {
	// object is the policy as last observed, without tests once it is built.
	object *v1alpha1.VirtualMachinePolicy
	// last is the build of the newest version, nil before the first.
	last *build
	// inForce is the active version, nil if there is none.
	inForce *version
	// broken is the placeholder for a policy of which no version can be evaluated.
	broken *version
}

// built reports whether the newest version has been built.
func (r *record) built() bool { return r.last != nil && r.last.generation == r.object.Generation }

// current returns the version in the set; nil if there is none.
func (r *record) current() *version { return cmp.Or(r.inForce, r.broken) }

func newLedger() *ledger { return &ledger{policies: map[string]*record{}} }

// see stores a policy. It returns whether the policy must be built, and whether the active set has changed, which is the
// case if the policy was replaced by another with the same name.
func (l *ledger) see(object *v1alpha1.VirtualMachinePolicy) (build, changed bool) {
	known := l.policies[object.Name]
	if known != nil && known.object.UID != object.UID {
		changed = known.current() != nil
		known = nil
	}
	if known == nil {
		l.policies[object.Name] = &record{object: object}
		return true, changed
	}
	if known.object.Generation == object.Generation && known.built() {
		object = trimmed(object)
	}
	build = known.object.Generation != object.Generation
	known.object = object
	return build, changed
}

// forget removes a deleted policy, and returns whether the active set has changed.
func (l *ledger) forget(name string) (changed bool) {
	known := l.policies[name]
	delete(l.policies, name)
	return known != nil && known.current() != nil
}

// settle stores the build of an object, and returns whether the active set has changed. The build of a deleted policy is
// ignored.
func (l *ledger) settle(object *v1alpha1.VirtualMachinePolicy, b *build) (changed bool) {
	known := l.policies[object.Name]
	if known == nil || known.object.UID != object.UID {
		return false
	}
	before := known.current()
	known.last = b
	if known.built() {
		known.object = trimmed(known.object)
	}
	switch {
	case b.good != nil:
		known.inForce, known.broken = b.good, nil
	case known.inForce != nil:
	case b.lastGood != nil:
		known.inForce, known.broken = b.lastGood, nil
	case len(b.problems) > 0:
		known.broken = newBroken(object, b.spec, "it does not compile")
	case wasInForce(object):
		known.broken = newBroken(object, b.spec, "its tests fail")
	default:
		known.broken = nil
	}
	return !same(before, known.current())
}

// wasInForce reports whether some version of the policy was active before.
func wasInForce(object *v1alpha1.VirtualMachinePolicy) bool {
	return object.Status.ActiveGeneration > 0 || object.Status.LastGood != nil
}

// same reports whether two versions are equivalent.
func same(a, b *version) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.fingerprint == b.fingerprint && a.entry.Policy == b.entry.Policy
}

// names returns the names of all policies, sorted.
func (l *ledger) names() []string { return slices.SortedFunc(maps.Keys(l.policies), strings.Compare) }

// set returns the active policies.
func (l *ledger) set() *policyset.Set {
	var entries []policyset.Entry
	for _, known := range l.policies {
		if current := known.current(); current != nil {
			entries = append(entries, current.entry)
		}
	}
	return policyset.NewSet(entries)
}

// trimmed returns a policy without its tests, which are not needed once it is built.
func trimmed(object *v1alpha1.VirtualMachinePolicy) *v1alpha1.VirtualMachinePolicy {
	if object.Spec.Tests == nil {
		return object
	}
	copied := *object
	copied.Spec.Tests = nil
	return &copied
}
