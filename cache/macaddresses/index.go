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
func (i *index) taken(machine types.NamespacedName, address string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return slices.ContainsFunc(i.holders[machine.Namespace][normal(address)], func(name string) bool { return name != machine.Name })
}

// set replaces the addresses of a VM. Without addresses it removes the VM.
func (i *index) set(machine types.NamespacedName, addresses []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.put(machine, addresses)
}

// replace replaces everything.
func (i *index) replace(all map[types.NamespacedName][]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.of)
	clear(i.holders)
	for machine, addresses := range all {
		i.put(machine, addresses)
	}
}

func (i *index) put(machine types.NamespacedName, addresses []string) {
	held := i.holders[machine.Namespace]
	for _, address := range i.of[machine] {
		held[address] = slices.DeleteFunc(held[address], func(name string) bool { return name == machine.Name })
		if len(held[address]) == 0 {
			delete(held, address)
		}
	}
	if len(held) == 0 {
		delete(i.holders, machine.Namespace)
	}
	delete(i.of, machine)
	if len(addresses) == 0 {
		return
	}
	held = i.holders[machine.Namespace]
	if held == nil {
		held = map[string][]string{}
		i.holders[machine.Namespace] = held
	}
	for _, address := range addresses {
		address = normal(address)
		i.of[machine] = append(i.of[machine], address)
		held[address] = append(held[address], machine.Name)
	}
}

// normal returns the canonical form of an address, for comparison.
func normal(address string) string {
	if parsed, err := net.ParseMAC(address); err == nil {
		return parsed.String()
	}
	return address
}
