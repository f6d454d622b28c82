package observed

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/cache/watching"
)

// clones counts VirtualMachines by what their disks are cloned from. It is safe for concurrent use.
type clones struct {
	mutex sync.Mutex
	// numbers are by Object.DataSources: clusters have few different ones.
	numbers map[string]int
	listen  func(dataSource types.NamespacedName)
}

func (c *clones) update(update watching.Update[Object]) {
	changed := map[string]bool{}
	c.mutex.Lock()
	for _, each := range update.Changes {
		before, after := each.Before.DataSources, each.After.DataSources
		if before == after {
			continue
		}
		c.add(before, -1)
		c.add(after, 1)
		changed[before], changed[after] = true, true
	}
	listen := c.listen
	c.mutex.Unlock()
	if listen == nil {
		return
	}
	for texts := range changed {
		for _, one := range parse(texts) {
			listen(one)
		}
	}
}

func (c *clones) add(dataSources string, number int) {
	if dataSources == "" {
		return
	}
	if c.numbers[dataSources] += number; c.numbers[dataSources] == 0 {
		delete(c.numbers, dataSources)
	}
}

func parse(dataSources string) (names []types.NamespacedName) {
	for one := range strings.FieldsSeq(dataSources) {
		namespace, name, _ := strings.Cut(one, "/")
		names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return names
}

// Clones returns the number of VirtualMachines with a disk that is cloned from one of these DataSources. It is not known before the first list, and
// if the cluster does not serve VirtualMachines.
func (w *Watch) Clones(of map[types.NamespacedName]bool) (number int, known bool) {
	if !w.vms.Synced() || w.vms.Problem() != nil {
		return 0, false
	}
	w.clones.mutex.Lock()
	defer w.clones.mutex.Unlock()
	for dataSources, vms := range w.clones.numbers {
		for _, one := range parse(dataSources) {
			if of[one] {
				number += vms
				break
			}
		}
	}
	return number, true
}

// Listen calls a function for each DataSource whose number of clones changes from now on. It must return quickly, and must not call the Watch.
func (w *Watch) Listen(changed func(dataSource types.NamespacedName)) {
	w.clones.mutex.Lock()
	defer w.clones.mutex.Unlock()
	w.clones.listen = changed
}
