package defaults

import (
	"context"
	"errors"
	"strings"

	"github.com/vmstencil/stencil/defaulting"
)

// Addresses knows the MAC addresses that there are; a macaddresses.Cache does.
type Addresses interface {
	Synced() bool
	// Taken says whether another machine of the namespace has the address.
	Taken(namespace, name, address string) bool
	// Pooled says whether a MAC pool manager cares for namespaces with these labels.
	Pooled(labels map[string]string) bool
}

// Namespaces knows the labels of namespaces; an approvalcache.Cache does.
type Namespaces interface {
	Namespace(ctx context.Context, name string) (labels, annotations map[string]string, known bool)
}

// maxCollisions is how often addresses are made that somebody has. With 46 random bits
// even the second time does not happen by chance.
const maxCollisions = 3

// policy is what is written in a namespace: no MAC addresses where a pool manager gives
// them.
func (h *Handler) policy(ctx context.Context, namespace string) (defaulting.Policy, error) {
	policy := h.Policy
	if policy.MAC != defaulting.MACGenerate {
		return policy, nil
	}
	if !h.Addresses.Synced() {
		return policy, errors.New("the MAC addresses of the machines that there are have not been read yet")
	}
	labels, _, known := h.Namespaces.Namespace(ctx, namespace)
	if !known {
		return policy, errors.New("the namespace is not known here yet, so nobody can tell whether a MAC pool manager cares for it")
	}
	if h.Addresses.Pooled(labels) {
		policy.MAC = defaulting.MACNever
	}
	return policy, nil
}

// collides says whether an address that was made is another machine's.
func (h *Handler) collides(f *filling, response *defaulting.Response) bool {
	if h.Addresses == nil {
		return false
	}
	for _, set := range response.Set {
		if address, ok := set.Value.(string); ok && strings.HasSuffix(set.Path, "].macAddress") && h.Addresses.Taken(f.request.Namespace, f.vm.Name(), address) {
			return true
		}
	}
	return false
}
