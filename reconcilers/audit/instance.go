package audit

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/excerpt"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// kubeVirtAnnotations are annotations that KubeVirt v1.8 and v1.9 add to a VirtualMachineInstance. Labels that begin with kubevirt.io/ are
// reserved for KubeVirt, which virt-api enforces.
var kubeVirtAnnotations = map[string]bool{
	"alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity": true,
	"kubevirt.io/cluster-instancetype-name":                true,
	"kubevirt.io/cluster-preference-name":                  true,
	"kubevirt.io/create-migration-target":                  true,
	"kubevirt.io/instancetype-name":                        true,
	"kubevirt.io/latest-observed-api-version":              true,
	"kubevirt.io/nonroot":                                  true,
	"kubevirt.io/pci-interface-slot-count":                 true,
	"kubevirt.io/pci-topology-version":                     true,
	"kubevirt.io/preference-name":                          true,
	"kubevirt.io/storage-observed-api-version":             true,
	"kubevirt.io/vm-generation":                            true,
}

// runs holds the fields of a VirtualMachine that are compared with its VirtualMachineInstance: those that reach the pod or determine what
// the guest can access. approval.Changes accepts the values.
type runs map[string]any

// instanceCheck compares instances with their VMs.
type instanceCheck struct {
	lister pager
	// writable are the keys of labels and annotations of instances that others may write. A key that ends in a slash permits a prefix.
	writable []string
	// sizes resolves instance types and preferences; if nil, sizes are not compared.
	sizes sizing.Resolver
	// hotplug is true if every user may hotplug volumes into running VMs.
	hotplug bool
	retries wait.Backoff

	// namespace is the last one that was listed. The VMs of a namespace are consecutive.
	namespace string
	// instances are the instances of the namespace by the UIDs of their VMs.
	instances map[string]instance
}

// instance holds what is compared of a VirtualMachineInstance.
type instance struct {
	runs runs
	// foreign are owners and finalizers that are not KubeVirt's.
	foreign []string
}

// apply sets the cause of VMs that satisfy an approval but differ from their instance, or have an instance with foreign owners or
// finalizers.
func (c *instanceCheck) apply(ctx context.Context, page []found) error {
	for i := range page {
		one := &page[i]
		if len(one.evaluation.satisfied) == 0 || one.running == nil {
			continue
		}
		if c.namespace != one.subject.namespace {
			if err := c.list(ctx, one.subject.namespace); err != nil {
				return err
			}
		}
		seen, exists := c.instances[string(one.subject.uid)]
		if !exists {
			continue
		}
		different := differing(one.running, seen.runs, one.evaluation.satisfied)
		if len(different) > 0 {
			one.evaluation = evaluation{cause: newCause(ruleInstanceDifferent, one.evaluation.satisfied[0].Name(),
				"its VirtualMachineInstance differs from it at %s", excerpt.List(different, maximumPaths, "fields"))}
		} else if len(seen.foreign) > 0 {
			one.evaluation = evaluation{cause: newCause(ruleForeignOwner, one.evaluation.satisfied[0].Name(),
				"its VirtualMachineInstance has %s, which belongs to no controller of virtual machines", excerpt.List(seen.foreign, maximumPaths, "owners and finalizers"))}
		}
	}
	return nil
}

// differing returns the paths at which an instance differs from its VM, except for those that an approval that the VM satisfies lists as
// overrides: a change of these takes effect at the next start.
func differing(of, seen runs, satisfied []*approval.Approval) []string {
	var texts []string
	for _, path := range approval.Changes(of, seen) {
		if !slices.ContainsFunc(satisfied, func(a *approval.Approval) bool { return a.Overridable(path) || ofSize(path) && resizable(a) }) {
			texts = append(texts, path.String())
		}
	}
	return texts
}

// sizePaths are the fields that an instance type or a preference sets. Annotations are not included: they reach the pod.
var sizePaths = []string{
	"spec.template.spec.domain.cpu", "spec.template.spec.domain.memory", "spec.template.spec.domain.devices.gpus",
	"spec.template.spec.domain.devices.hostDevices", "spec.template.spec.nodeSelector", "spec.template.spec.schedulerName",
}

func ofSize(path approval.Path) bool {
	text := path.String()
	return slices.ContainsFunc(sizePaths, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// resizable reports whether an approval lets users choose another instance type or preference, which takes effect at the next start.
func resizable(a *approval.Approval) bool {
	return slices.ContainsFunc([]string{"instancetype", "preference"}, func(key string) bool {
		return a.Overridable(approval.Path{approval.Field("spec"), approval.Field(key), approval.Field("name")})
	})
}

func (c *instanceCheck) list(ctx context.Context, namespace string) error {
	instances := map[string]instance{}
	err := readAll(ctx, c.lister, c.retries, namespace, func(object map[string]any) {
		owner, name := ownerOf(object)
		if owner == "" || name != machine.StringAt(machine.MapAt(object, "metadata"), "name") {
			return
		}
		seen, _ := machine.View(machine.KindInstance, object)
		instances[owner] = instance{c.runs(seen, nil, nil), controllers(nil).foreign(machine.MapAt(object, "metadata"))}
	})
	if err != nil {
		return err
	}
	c.namespace, c.instances = namespace, instances
	return nil
}

// ownerOf returns UID and name of the VirtualMachine that controls an instance, empty if there is none. KubeVirt gives an instance the name
// of its VirtualMachine.
func ownerOf(instance map[string]any) (uid, name string) {
	metadata, _ := instance["metadata"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	for _, each := range owners {
		if owner, _ := each.(map[string]any); owner["kind"] == "VirtualMachine" && owner["controller"] == true {
			return machine.StringAt(owner, "uid"), machine.StringAt(owner, "name")
		}
	}
	return "", ""
}

// of returns what a stored VM should run as; nil if it is not running, or if it names an instance type or a preference that is not found.
func (c *instanceCheck) of(ctx context.Context, object map[string]any, namespace string) runs {
	status, _ := object["status"].(map[string]any)
	if status["created"] != true || c.sizes == nil {
		return nil
	}
	size, exists := c.resolve(ctx, object, namespace, sizing.Instancetype)
	preferred, also := c.resolve(ctx, object, namespace, sizing.Preference)
	if !exists || !also {
		return nil
	}
	return c.runs(object, size, preferred)
}

// resolve returns nil and true for a VM that names none.
func (c *instanceCheck) resolve(
	ctx context.Context, object map[string]any, namespace string, refer func(object map[string]any, namespace string) (*sizing.Reference, *field.Error),
) (map[string]any, bool) {
	reference, invalid := refer(object, namespace)
	if invalid != nil || reference == nil {
		return nil, invalid == nil
	}
	named, err := c.sizes.Resolve(ctx, *reference)
	return named, err == nil
}

// runs projects a VirtualMachine with the instance type and the preference that it names, which may be nil. Fields that KubeVirt sets when
// it creates the instance are set here too, or excluded.
func (c *instanceCheck) runs(object, instancetype, preference map[string]any) runs {
	template := machine.MapAt(object, "spec", "template")
	if instancetype != nil {
		sized, err := sizing.Apply(template, instancetype, preference)
		if err != nil {
			return nil
		}
		template = sized
	}
	size, guest := machine.MapAt(instancetype, "spec"), machine.MapAt(template, "spec")
	labels, annotations := map[string]any{}, map[string]any{}
	for key, value := range machine.MapAt(template, "metadata", "labels") {
		if !strings.HasPrefix(key, "kubevirt.io/") && !strings.HasPrefix(key, "vm.kubevirt.io/") && !c.isWritable(key) {
			labels[key] = value
		}
	}
	// The VM's own annotations take precedence.
	for _, from := range []map[string]any{machine.MapAt(preference, "spec", "annotations"), machine.MapAt(size, "annotations"), machine.MapAt(template, "metadata", "annotations")} {
		for key, value := range from {
			if !kubeVirtAnnotations[key] && !c.isWritable(key) {
				annotations[key] = value
			}
		}
	}
	devices := machine.MapAt(guest, "domain", "devices")
	list := func(of map[string]any, key string) []any {
		items, _ := of[key].([]any)
		return items
	}
	return runs{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": labels, "annotations": annotations},
		"spec": map[string]any{
			"accessCredentials": guest["accessCredentials"],
			"networks":          networks(guest, devices),
			"nodeSelector":      given(guest["nodeSelector"], size["nodeSelector"]),
			"priorityClassName": guest["priorityClassName"],
			"schedulerName":     given(guest["schedulerName"], size["schedulerName"]),
			"tolerations":       guest["tolerations"],
			"volumes":           volumes(list(guest, "volumes"), c.hotplug),
			"domain": map[string]any{
				"cpu":    cpu(guest),
				"memory": map[string]any{"guest": memory(guest)},
				"devices": map[string]any{
					"gpus":        items(slices.Concat(list(devices, "gpus"), list(size, "gpus")), "deviceName"),
					"hostDevices": items(slices.Concat(list(devices, "hostDevices"), list(size, "hostDevices")), "deviceName"),
				},
			},
		},
	}}}
}

func (c *instanceCheck) isWritable(key string) bool {
	return slices.ContainsFunc(c.writable, func(permitted string) bool {
		return key == permitted || strings.HasSuffix(permitted, "/") && strings.HasPrefix(key, permitted)
	})
}

// given returns the first value that is not nil.
func given(values ...any) any {
	for _, value := range values {
		if value != nil {
			return value
		}
	}
	return nil
}

// items reduces the items of a list to their names and these fields.
func items(list []any, fields ...string) []any {
	var reduced []any
	for _, each := range list {
		item, _ := each.(map[string]any)
		compared := map[string]any{"name": item["name"]}
		for _, field := range fields {
			compared[field] = item[field]
		}
		reduced = append(reduced, compared)
	}
	return reduced
}

// networks returns the networks of the guest. A VM without networks gets the pod network, called default.
func networks(guest, devices map[string]any) []any {
	named, _ := guest["networks"].([]any)
	if len(named) == 0 && devices["autoattachPodInterface"] != false {
		return []any{map[string]any{"name": "default"}}
	}
	return items(named, "multus")
}

// volumes returns volumes without image pull policies, which KubeVirt sets, and without hotplugged volumes if hotplug is true.
func volumes(list []any, hotplug bool) []any {
	var compared []any
	for _, each := range list {
		volume, _ := each.(map[string]any)
		if hotplug && (machine.MapAt(volume, "persistentVolumeClaim")["hotpluggable"] == true || machine.MapAt(volume, "dataVolume")["hotpluggable"] == true) {
			continue
		}
		if image := machine.MapAt(volume, "containerDisk"); image != nil {
			volume = maps.Clone(volume)
			image = maps.Clone(image)
			delete(image, "imagePullPolicy")
			volume["containerDisk"] = image
		}
		compared = append(compared, volume)
	}
	return compared
}

// cpu returns the number of sockets, cores and threads of a guest.
func cpu(guest map[string]any) map[string]any {
	sockets, cores, threads := sizing.Topology(guest)
	return map[string]any{"sockets": sockets, "cores": cores, "threads": threads}
}

// memory returns the memory of a guest in bytes.
func memory(guest map[string]any) any {
	quantity, err := sizing.Memory(guest)
	switch {
	case err != nil:
		return err.Error()
	case quantity == nil:
		return nil
	}
	return quantity.Value()
}
