package macaddresses

import (
	"net"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// holders are the names of VMs by namespace and address. It is safe for concurrent use.
type holders struct {
	mutex       sync.RWMutex
	byNamespace map[string]map[string][]string
}

func newHolders() *holders { return &holders{byNamespace: map[string]map[string][]string{}} }

// taken reports whether another VM of the namespace has the address.
func (h *holders) taken(vm types.NamespacedName, address string) bool {
	h.mutex.RLock()
	defer h.mutex.RUnlock()
	return slices.ContainsFunc(h.byNamespace[vm.Namespace][normal(address)], func(name string) bool { return name != vm.Name })
}

// change replaces the addresses of a VM.
func (h *holders) change(vm types.NamespacedName, before, after []string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	held := h.byNamespace[vm.Namespace]
	if held == nil {
		held = map[string][]string{}
		h.byNamespace[vm.Namespace] = held
	}
	for _, address := range before {
		held[address] = slices.DeleteFunc(held[address], func(name string) bool { return name == vm.Name })
		if len(held[address]) == 0 {
			delete(held, address)
		}
	}
	for _, address := range after {
		held[address] = append(held[address], vm.Name)
	}
	if len(held) == 0 {
		delete(h.byNamespace, vm.Namespace)
	}
}

// normal returns the canonical form of an address, for comparison.
func normal(address string) string {
	if parsed, err := net.ParseMAC(address); err == nil {
		return parsed.String()
	}
	return address
}
