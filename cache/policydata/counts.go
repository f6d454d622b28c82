package policydata

import (
	"errors"
	"fmt"
	"sync"

	kubelabels "k8s.io/apimachinery/pkg/labels"

	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

var errNoNamespace = errors.New("the object has no namespace")

// counts are the numbers of the VirtualMachines that a selector selects, by namespace. It implements rego.Source, and is safe for concurrent use.
type counts struct {
	of       *virtualMachines
	selector kubelabels.Selector

	mutex sync.Mutex
	// tallies are by namespace. A namespace without VirtualMachines has none.
	tallies map[string]*tally
}

var _ rego.Source = &counts{}

// tally are the numbers of one namespace, as long as nothing changes there.
type tally struct {
	// version of the namespace.
	version uint64
	// written is closed when an instance type has changed; nil if no VirtualMachine has one.
	written <-chan struct{}
	sum     numbers
	// each are the numbers of each VirtualMachine, by name.
	each map[string]numbers
}

// numbers of some VirtualMachines.
type numbers struct {
	count, unknown int64
	sizing.Size
}

func (n *numbers) add(other numbers, sign int64) {
	n.count += sign * other.count
	n.unknown += sign * other.unknown
	n.CPUs += sign * other.CPUs
	n.Memory += sign * other.Memory
}

// Value implements rego.Source: the numbers of all other VirtualMachines of the namespace, so that they are the same before a VirtualMachine is created
// and afterwards.
func (c *counts) Value(of rego.ObjectKey) (*rego.Value, error) {
	if of.Namespace == "" {
		return nil, errNoNamespace
	}
	sum := c.others(of)
	value, err := rego.NewValue(map[string]any{"count": sum.count, "cpus": sum.CPUs, "memory": sum.Memory, "unknown": sum.unknown})
	if err != nil {
		return nil, fmt.Errorf("converting the numbers of VirtualMachines: %w", err)
	}
	return value, nil
}

func (c *counts) others(of rego.ObjectKey) numbers {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	tallied := c.tally(of.Namespace)
	sum := tallied.sum
	// A VirtualMachineInstance has the name of its VirtualMachine. Objects of other kinds only happen to have the name of one.
	if of.Kind == rego.KindVirtualMachine || of.Kind == machine.KindInstance {
		sum.add(tallied.each[of.Name], -1)
	}
	return sum
}

// tally returns the present numbers of a namespace.
func (c *counts) tally(namespace string) *tally {
	version := c.of.version(namespace)
	if known := c.tallies[namespace]; known != nil && known.version == version && !closed(known.written) {
		return known
	}
	// Both are read before what they are about: a change meanwhile has the next evaluation count again.
	next, written := &tally{version: version, each: map[string]numbers{}}, c.of.sizes.Written()
	c.of.index.RangeIn(namespace, func(name string, each vm) {
		if !c.selector.Matches(each.labels) {
			return
		}
		if each.instancetype != nil {
			next.written = written
		}
		one := numbers{count: 1}
		if size, known := each.sized(namespace, c.of.sizes); known {
			one.Size = size
		} else {
			one.unknown = 1
		}
		next.each[name] = one
		next.sum.add(one, 1)
	})
	if delete(c.tallies, namespace); len(next.each) > 0 {
		c.tallies[namespace] = next
	}
	return next
}

func closed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false // also if there is no signal
	}
}
