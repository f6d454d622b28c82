package macaddresses

import (
	"net"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// index holds the addresses of VirtualMachines. It is safe for concurrent use.
type index struct {
	mu sync.RWMutex
	// of holds the addresses of each VM. holders holds the names of VMs by namespace and address.
	of      map[types.NamespacedName][]string
	holders map[string]map[string][]string
}

func newIndex() *index {
	return &index{of: map[types.NamespacedName][]string{}, holders: map[string]map[string][]string{}}
}

// taken reports whether another VM of the namespace has the address.
func (i *index) taken(vm types.NamespacedName, address string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return slices.ContainsFunc(i.holders[vm.Namespace][normal(address)], func(name string) bool { return name != vm.Name })
}

// set replaces the addresses of a VM. Without addresses it removes the VM.
func (i *index) set(vm types.NamespacedName, addresses []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.put(vm, addresses)
}

// replace replaces everything.
func (i *index) replace(all map[types.NamespacedName][]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.of)
	clear(i.holders)
	for vm, addresses := range all {
		i.put(vm, addresses)
	}
}

func (i *index) put(vm types.NamespacedName, addresses []string) {
	held := i.holders[vm.Namespace]
	for _, address := range i.of[vm] {
		held[address] = slices.DeleteFunc(held[address], func(name string) bool { return name == vm.Name })
		if len(held[address]) == 0 {
			delete(held, address)
		}
	}
	if len(held) == 0 {
		delete(i.holders, vm.Namespace)
	}
	delete(i.of, vm)
	if len(addresses) == 0 {
		return
	}
	held = i.holders[vm.Namespace]
	if held == nil {
		held = map[string][]string{}
		i.holders[vm.Namespace] = held
	}
	for _, address := range addresses {
		address = normal(address)
		i.of[vm] = append(i.of[vm], address)
		held[address] = append(held[address], vm.Name)
	}
}

// normal returns the canonical form of an address, for comparison.
func normal(address string) string {
	if parsed, err := net.ParseMAC(address); err == nil {
		return parsed.String()
	}
	return address
}
