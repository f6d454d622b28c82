package policies

import (
	"context"
	"slices"

	"github.com/vmstencil/stencil/rego"
)

// Data are the values of the cluster that policies read; a policydata.Cache implements it.
type Data interface {
	// Synced reports whether the values have been read.
	Synced() bool
	// Changed returns a channel that is closed when a value may have changed, or Synced has.
	Changed() <-chan struct{}
	// Bind returns the present values of references, in their order.
	Bind([]rego.Reference) []rego.Binding
}

// binder gives versions the values of the cluster that they read.
type binder struct{ data Data }

// ready reports whether all values have been read that a version needs.
func (b binder) ready(v *version) bool {
	return len(references(v)) == 0 || b.data == nil || b.data.Synced()
}

// bound returns a version with the present values, the same if it has them. It does not change it. nil has none.
func (b binder) bound(v *version) *version {
	declared := references(v)
	if len(declared) == 0 || b.data == nil {
		return v
	}
	policy := v.entry.Policy.(*rego.Policy)
	values := b.data.Bind(declared)
	if slices.EqualFunc(policy.Data(), values, rego.Binding.Equal) {
		return v
	}
	other := *v
	other.entry.Policy = policy.WithData(values)
	return &other
}

// references returns the values that a version declares.
func references(v *version) []rego.Reference {
	if v == nil {
		return nil
	}
	policy, ok := v.entry.Policy.(*rego.Policy)
	if !ok {
		return nil
	}
	return policy.References()
}

// followData publishes the policies with changed values, until ctx ends.
func (c *Cache) followData(ctx context.Context) {
	for {
		next := c.active.binder.data.Changed()
		c.mutex.Lock()
		changed := false
		for _, r := range c.active.policies {
			if bound := c.active.binder.bound(r.active); bound != r.active {
				r.active, changed = bound, true
			}
		}
		if changed || !c.published {
			c.publish(changed)
		}
		c.mutex.Unlock()
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}
