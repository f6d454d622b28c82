package policies

import (
	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cache/watching"
)

// delivery holds a policy until it is observed. The index stores empty deliveries: the policies are in activeVersions, which
// drops their tests once they are built.
type delivery struct {
	policy *v1alpha1.VirtualMachinePolicy
}

// newIndex returns the index that the reflector fills.
func newIndex(update func(watching.Update[*delivery])) *watching.Index[*v1alpha1.VirtualMachinePolicy, *delivery] {
	return watching.NewIndex(watching.Options[*v1alpha1.VirtualMachinePolicy, *delivery]{
		Kind: "VirtualMachinePolicies",
		Convert: func(policy *v1alpha1.VirtualMachinePolicy, _ *delivery, _ bool) (*delivery, error) {
			// Managed fields are not needed, and large.
			policy.ManagedFields = nil
			return &delivery{policy}, nil
		},
		Changed: update,
	})
}

// update queues the policies that must be built, and publishes the active set if it has changed.
func (c *Cache) update(update watching.Update[*delivery]) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	changed := false
	if update.First {
		c.listed, c.awaited, changed = true, map[string]bool{}, true
	}
	for _, each := range update.Changes {
		if !each.Exists {
			delete(c.awaited, each.Name)
			changed = c.active.forget(each.Name) || changed
			continue
		}
		build, replaced := c.active.observe(each.After.policy)
		each.After.policy = nil
		changed = changed || replaced
		if build {
			c.queue.Add(each.Name)
		}
		if update.First {
			c.awaited[each.Name] = true
		}
	}
	c.publish(changed)
}
