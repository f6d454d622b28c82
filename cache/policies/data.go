package policies

import (
	"context"
	"slices"
	"time"

	"github.com/vmstencil/stencil/rego"
)

// Data are the values of the cluster that policies read; a policydata.Cache implements it.
type Data interface {
	// Ready reports whether everything has been read that the values of references are made of. It is read once Bind was called for them.
	Ready([]rego.Reference) bool
	// Changed returns a channel that is closed when a value may have changed, or Ready has.
	Changed() <-chan struct{}
	// Bind returns the present values of references, in their order. Those that depend on the object that is evaluated have a source.
	Bind([]rego.Reference) []rego.Binding
}

// binder gives versions the values of the cluster that they read.
type binder struct{ data Data }

// ready reports whether all values have been read that a version needs.
func (b binder) ready(v *version) bool {
	declared := references(v)
	return len(declared) == 0 || b.data == nil || b.data.Ready(declared)
}

// readTimeout is the timeout of reading what the values of one version are made of. It is shorter than that of the webhook of policies.
const readTimeout = 3 * time.Second

// await binds a version, and waits until everything has been read that its values are made of: what no other policy needs is read when a policy first
// declares it. After the timeout, the version has no such value until it has been read.
func (b binder) await(ctx context.Context, v *version) {
	if b.ready(v) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for {
		changed := b.data.Changed()
		if b.bound(v); b.ready(v) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
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
