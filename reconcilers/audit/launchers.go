package audit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/reconcilers/audit/observed"
)

// Observed are the objects that run VMs, as a watch stores them. An observed.Watch implements it.
type Observed interface {
	Synced() bool
	// Changed returns a channel that is closed when a namespace is added to those that Take returns.
	Changed() <-chan struct{}
	// Take returns the namespaces in which something changed since the last call.
	Take() []string
	VMs(namespace string) []observed.Object
	Instances(namespace string) []observed.Object
	Pods(namespace string) []observed.Object
}

// Kinds of owners, and of objects that belong to no VirtualMachine.
const (
	kindVirtualMachine = "VirtualMachine"
	kindInstance       = "VirtualMachineInstance"
	kindPod            = "Pod"
)

// launcherCheck compares the pods of running VMs with the pods that KubeVirt creates.
type launcherCheck struct {
	observed Observed
	images   images
	// entryPoints are the names of entry points that the chart opens.
	entryPoints []string

	// namespace is the last one that was read. The VMs of a namespace are consecutive.
	namespace string
	// instances are by the UIDs of their VMs, pods by the UIDs of their owners.
	instances map[types.UID]observed.Object
	pods      map[types.UID][]observed.Object
}

// apply sets the cause of VMs that satisfy an approval but have pods that differ from those that KubeVirt creates.
func (c *launcherCheck) apply(page []found) {
	if !c.observed.Synced() {
		return
	}
	for i := range page {
		one := &page[i]
		if len(one.evaluation.satisfied) == 0 {
			continue
		}
		if c.namespace != one.subject.namespace {
			c.read(one.subject.namespace)
		}
		instance, runs := c.instances[one.subject.uid]
		if !runs || instance.Name != one.subject.name {
			continue
		}
		var problems []string
		for _, pod := range c.pods[instance.UID] {
			problems = append(problems, c.images.foreign(pod, instance)...)
			for _, attached := range c.pods[pod.UID] {
				problems = append(problems, c.images.foreign(attached, instance)...)
			}
		}
		if len(problems) > 0 {
			one.evaluation = evaluation{cause: newCause(ruleLauncherDifferent, one.evaluation.satisfied[0].Name(),
				"what runs it is not what KubeVirt makes of it: %s", excerpt.List(problems, maximumPaths, "containers"))}
		}
	}
}

func (c *launcherCheck) read(namespace string) {
	c.namespace, c.instances, c.pods = namespace, map[types.UID]observed.Object{}, map[types.UID][]observed.Object{}
	for _, instance := range c.observed.Instances(namespace) {
		if instance.OwnerKind == kindVirtualMachine {
			c.instances[instance.OwnerUID] = instance
		}
	}
	for _, pod := range c.observed.Pods(namespace) {
		if !pod.Ended && pod.OwnerUID != "" {
			c.pods[pod.OwnerUID] = append(c.pods[pod.OwnerUID], pod)
		}
	}
}

// stray is an object that runs a VM, or is labelled as one that does, and belongs to no VirtualMachine.
type stray struct {
	kind, name string
	uid        types.UID
	message    string
}

// strays returns the strays of a namespace, given the names of its listed VirtualMachines by their UIDs.
func (c *launcherCheck) strays(namespace string, vms map[types.UID]string) []stray {
	if !c.observed.Synced() {
		return nil
	}
	names := map[types.UID]string{}
	for _, vm := range c.observed.VMs(namespace) {
		names[vm.UID] = vm.Name
	}
	var list []stray
	running, pods := map[types.UID]bool{}, map[types.UID]bool{}
	for _, instance := range c.observed.Instances(namespace) {
		running[instance.UID] = true
		if instance.Ended || c.open(instance.OwnerKind) {
			continue
		}
		owner, listed := vms[instance.OwnerUID]
		if !listed {
			owner, listed = names[instance.OwnerUID]
		}
		switch {
		case instance.OwnerKind != kindVirtualMachine || !listed:
			list = append(list, stray{kindInstance, instance.Name, instance.UID, "a VirtualMachineInstance that belongs to no VirtualMachine"})
		case owner != instance.Name:
			list = append(list, stray{kindInstance, instance.Name, instance.UID,
				fmt.Sprintf("a VirtualMachineInstance that names VirtualMachine %s, of which KubeVirt has not made it", owner)})
		}
	}
	observedPods := c.observed.Pods(namespace)
	for _, pod := range observedPods {
		pods[pod.UID] = true
	}
	for _, pod := range observedPods {
		owned := pod.OwnerKind == kindInstance && running[pod.OwnerUID] || pod.OwnerKind == kindPod && pods[pod.OwnerUID]
		if !pod.Ended && !owned {
			list = append(list, stray{kindPod, pod.Name, pod.UID, "a Pod with the label of pods of virtual machines that belongs to no VirtualMachineInstance"})
		}
	}
	return list
}

// open reports whether instances with an owner of this kind, empty for none, use an entry point that is open to all users.
func (c *launcherCheck) open(owner string) bool {
	for _, name := range c.entryPoints {
		if name == "virtualMachineInstance" && owner == "" || name == "replicaSet" && owner == "VirtualMachineInstanceReplicaSet" {
			return true
		}
	}
	return false
}
