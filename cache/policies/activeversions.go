package policies

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// activeVersions stores the active version of each policy. It is not safe for concurrent use.
type activeVersions struct {
	policies map[string]*record
	binder   binder
}

// record is the state of one policy.
type record struct {
	// object is the policy as last observed, without tests once it is not built any more.
	object *v1alpha1.VirtualMachinePolicy
	// last is the build of the newest version, nil before the first.
	last *build
	// active is the active version, nil if there is none.
	active *version
	// broken is the placeholder for a policy of which no version can be evaluated.
	broken *version
}

// built reports whether the newest version has been built.
func (r *record) built() bool { return r.last != nil && r.last.generation == r.object.Generation }

// final reports whether the newest version has been built and will not be built again. Then its tests are not needed any more.
func (r *record) final() bool { return r.built() && !r.last.overrun && !r.last.mistyped() }

// current returns the version in the set; nil if there is none.
func (r *record) current() *version { return cmp.Or(r.active, r.broken) }

func newActiveVersions(b binder) *activeVersions {
	return &activeVersions{policies: map[string]*record{}, binder: b}
}

// observe stores a policy. It returns whether the policy must be built, and whether the active set has changed, which is the
// case if the policy was replaced by another with the same name.
func (a *activeVersions) observe(object *v1alpha1.VirtualMachinePolicy) (build, changed bool) {
	r := a.policies[object.Name]
	if r != nil && r.object.UID != object.UID {
		changed = r.current() != nil
		r = nil
	}
	if r == nil {
		a.policies[object.Name] = &record{object: object}
		return true, changed
	}
	if r.object.Generation == object.Generation && r.final() {
		object = trimmed(object)
	}
	build = r.object.Generation != object.Generation
	r.object = object
	return build, changed
}

// forget removes a deleted policy, and returns whether the active set has changed.
func (a *activeVersions) forget(name string) (changed bool) {
	r := a.policies[name]
	delete(a.policies, name)
	return r != nil && r.current() != nil
}

// recordBuild stores the build of an object, and returns whether the active set has changed. The build of a deleted policy is
// ignored.
func (a *activeVersions) recordBuild(object *v1alpha1.VirtualMachinePolicy, b *build) (changed bool) {
	r := a.policies[object.Name]
	if r == nil || r.object.UID != object.UID {
		return false
	}
	before := r.current()
	r.last = b
	if r.final() {
		r.object = trimmed(r.object)
	}
	switch {
	case b.good != nil:
		r.active, r.broken = a.binder.bound(b.good), nil
	case r.active != nil:
	case b.lastGood != nil:
		r.active, r.broken = a.binder.bound(b.lastGood), nil
	case len(b.problems) > 0:
		r.broken = newBroken(object, b.spec, "it does not compile")
	case wasActive(object):
		r.broken = newBroken(object, b.spec, "its tests fail")
	default:
		r.broken = nil
	}
	return !same(before, r.current())
}

// wasActive reports whether some version of the policy was active before.
func wasActive(object *v1alpha1.VirtualMachinePolicy) bool {
	return object.Status.ActiveGeneration > 0 || object.Status.LastGood != nil
}

// same reports whether two versions are equivalent.
func same(a, b *version) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.fingerprint == b.fingerprint && a.entry.Policy == b.entry.Policy
}

// ready reports whether the values that policies read have been read.
func (a *activeVersions) ready() bool {
	for _, r := range a.policies {
		if !a.binder.ready(r.active) {
			return false
		}
	}
	return true
}

// names returns the names of all policies, sorted.
func (a *activeVersions) names() []string {
	return slices.SortedFunc(maps.Keys(a.policies), strings.Compare)
}

// set returns the active policies.
func (a *activeVersions) set() *policyset.Set {
	var entries []policyset.Entry
	for _, r := range a.policies {
		if current := r.current(); current != nil {
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
