package guestdefaults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/defaulting"
)

// Addresses reports which MAC addresses are in use; a macaddresses.Cache implements it.
type Addresses interface {
	Synced() bool
	// Taken reports whether another VM of the namespace has the address.
	Taken(namespace, name, address string) bool
	// Pooled reports whether a MAC pool manager manages namespaces with these labels.
	Pooled(labels map[string]string) bool
}

// Namespaces returns the labels of namespaces; an approvalcache.Cache implements it.
type Namespaces interface {
	Namespace(ctx context.Context, name string) (labels, annotations map[string]string, found bool)
}

// maxCollisions is the number of attempts to generate unused addresses. With 46 random bits even a second collision
// is not accidental.
const maxCollisions = 3

// policy returns the policy for a namespace: without MAC addresses if a MAC pool manager assigns them.
func (f *Filler) policy(ctx context.Context, namespace string) (defaulting.Policy, error) {
	policy := f.Policy
	if policy.MAC != defaulting.MACGenerate {
		return policy, nil
	}
	if !f.Addresses.Synced() {
		return policy, fmt.Errorf("the MAC address cache %w", ErrUnsynced)
	}
	labels, _, found := f.Namespaces.Namespace(ctx, namespace)
	if !found {
		return policy, errors.New("the namespace is not in the cache yet, so it is unknown whether a MAC pool manager manages it")
	}
	if f.Addresses.Pooled(labels) {
		policy.MAC = defaulting.MACNever
	}
	return policy, nil
}

// collides reports whether a generated address belongs to another VM.
func (f *Filler) collides(s *Subject, response *defaulting.Response) bool {
	if f.Addresses == nil {
		return false
	}
	for _, set := range response.Set {
		if address, ok := set.Value.(string); ok && strings.HasSuffix(set.Path, "].macAddress") && f.Addresses.Taken(s.Namespace, s.VM.Name(), address) {
			return true
		}
	}
	return false
}
