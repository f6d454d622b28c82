package policies

import (
	"fmt"
	"maps"

	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// store stores and queues the objects of the reflector; workers build them.
type store struct{ *Cache }

var _ cache.ReflectorStore = &store{}

func policyOf(object any) (*v1alpha1.VirtualMachinePolicy, error) {
	policy, ok := object.(*v1alpha1.VirtualMachinePolicy)
	if !ok {
		return nil, fmt.Errorf("policy cache was given a %T", object)
	}
	// Managed fields are not needed, and large.
	policy.ManagedFields = nil
	return policy, nil
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	policy, err := policyOf(object)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.publish(s.observe(policy))
	return nil
}

// observe queues a policy if it must be built, and returns whether the active set has changed. It must be called with the lock
// held.
func (s *store) observe(policy *v1alpha1.VirtualMachinePolicy) (changed bool) {
	build, changed := s.active.observe(policy)
	if build {
		s.queue.Add(policy.Name)
	}
	return changed
}

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore. Only the name of the object counts.
func (s *store) Delete(object any) error {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return fmt.Errorf("reading the name of a deleted policy: %w", err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.awaited, name)
	s.publish(s.active.forget(name))
	return nil
}

// Replace implements cache.ReflectorStore: the first list, and each one after a watch
// was lost for good.
func (s *store) Replace(objects []any, _ string) error {
	policies := make(map[string]*v1alpha1.VirtualMachinePolicy, len(objects))
	for _, object := range objects {
		policy, err := policyOf(object)
		if err != nil {
			return err
		}
		policies[policy.Name] = policy
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	changed := false
	for name := range maps.Keys(s.active.policies) {
		if policies[name] == nil {
			changed = s.active.forget(name) || changed
		}
	}
	for _, policy := range policies {
		changed = s.observe(policy) || changed
	}
	if !s.listed {
		s.listed, s.awaited = true, map[string]bool{}
		for name := range policies {
			s.awaited[name] = true
		}
		changed = true
	}
	s.publish(changed)
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing.
func (s *store) Resync() error { return nil }
