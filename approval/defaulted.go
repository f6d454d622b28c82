package approval

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
)

// defaultedPlaces are the places at which stencil-defaulter sets how the guest finds its devices, but no resources. A test compares the list with the
// defaulter's table of fields. Places that are defaults with certain values only are in defaulted.
var defaultedPlaces = []string{
	"spec.template.spec.architecture",
	"spec.template.spec.domain.devices.autoattachGraphicsDevice",
	"spec.template.spec.domain.devices.autoattachInputDevice",
	"spec.template.spec.domain.devices.autoattachMemBalloon",
	"spec.template.spec.domain.devices.autoattachPodInterface",
	"spec.template.spec.domain.devices.autoattachSerialConsole",
	"spec.template.spec.domain.devices.disableHotplug",
	"spec.template.spec.domain.devices.disks[*].cdrom.bus",
	"spec.template.spec.domain.devices.disks[*].cdrom.readonly",
	"spec.template.spec.domain.devices.disks[*].cdrom.tray",
	"spec.template.spec.domain.devices.disks[*].disk.bus",
	"spec.template.spec.domain.devices.disks[*].disk.pciAddress",
	"spec.template.spec.domain.devices.disks[*].lun.bus",
	"spec.template.spec.domain.devices.inputs[*].bus",
	"spec.template.spec.domain.devices.inputs[*].type",
	"spec.template.spec.domain.devices.interfaces[*].macAddress",
	"spec.template.spec.domain.devices.interfaces[*].masquerade",
	"spec.template.spec.domain.devices.interfaces[*].model",
	"spec.template.spec.domain.devices.interfaces[*].pciAddress",
	"spec.template.spec.domain.devices.panicDevices[*].model",
	"spec.template.spec.domain.devices.rng",
	"spec.template.spec.domain.devices.sound.model",
	"spec.template.spec.domain.devices.tpm",
	"spec.template.spec.domain.devices.useVirtioTransitional",
	"spec.template.spec.domain.devices.watchdog.i6300esb",
	"spec.template.spec.domain.features.acpi.enabled",
	"spec.template.spec.domain.firmware.bootloader.bios",
	"spec.template.spec.domain.firmware.bootloader.efi",
	"spec.template.spec.domain.firmware.uuid",
	"spec.template.spec.domain.machine.type",
}

var defaultedOverrides = sync.OnceValue(func() []Override { return overridesOf(defaultedPlaces) })

// WithDefaults returns the additions together with those of a cluster in which
// stencil-defaulter fills in what guests see.
func (a *Additions) WithDefaults() *Additions {
	return &Additions{overrides: append(append([]Override(nil), a.overrides...), defaultedOverrides()...), defaulted: true}
}

const (
	domainPath  = "spec.template.spec.domain"
	devicesPath = domainPath + ".devices"
)

// defaulted reports whether an addition to a VirtualMachine has a default value: a disk for a volume of the template, the pod network where the
// template has no networks, and a topology and a memory that follow from the resources.
func defaulted(rendered, stored map[string]any, path Path) bool {
	under, guest := specOf(rendered), specOf(stored)
	domain := below(guest, "domain")
	devices := below(domain, "devices")
	switch text := path.String(); text {
	case domainPath + ".cpu.cores", domainPath + ".cpu.threads":
		return quantityAt(domain, "cpu", path[len(path)-1].text) == 1
	case domainPath + ".cpu.sockets":
		return quantityAt(domain, "cpu", "sockets") == sockets(domain)
	case domainPath + ".memory.guest":
		size := quantityAt(domain, "memory", "guest")
		return size > 0 && (size == quantityAt(domain, "resources", "requests", "memory") || size == quantityAt(domain, "resources", "limits", "memory"))
	case devicesPath + ".interfaces[name=default]":
		return vacant(below(under, "domain", "devices")["interfaces"]) && vacant(under["networks"]) &&
			holdsOnly(itemNamed(devices["interfaces"], "default"), "name", "masquerade", "bridge", "model", "pciAddress", "macAddress")
	case "spec.template.spec.networks[name=default]":
		network := itemNamed(guest["networks"], "default")
		pod, is := network["pod"].(map[string]any)
		return vacant(below(under, "domain", "devices")["interfaces"]) && vacant(under["networks"]) &&
			is && len(pod) == 0 && holdsOnly(network, "name", "pod")
	case devicesPath + ".inputs[name=default-0]":
		return holdsOnly(itemNamed(devices["inputs"], "default-0"), "name", "bus", "type")
	default:
		const list = devicesPath + ".disks"
		if len(path) != 7 || path[:6].String() != list {
			return false
		}
		for _, item := range asList(under["volumes"]) {
			volume := nameOf(item)
			if volume == "" || path[6] != Item(volume) {
				continue
			}
			disk := itemNamed(devices["disks"], volume)
			target, _ := disk["disk"].(map[string]any)
			return holdsOnly(disk, "name", "disk") && holdsOnly(target, "bus", "pciAddress")
		}
		return false
	}
}

// sockets returns the number of sockets that KubeVirt gives a guest without a topology.
func sockets(domain map[string]any) int64 {
	for _, kind := range []string{"limits", "requests"} {
		if n := quantityAt(domain, "resources", kind, "cpu"); n > 0 {
			return n
		}
	}
	return 1
}

// quantityAt returns a number or a quantity, rounded up, or -1 when there is none.
func quantityAt(object map[string]any, path ...string) int64 {
	value := below(object, path[:len(path)-1]...)[path[len(path)-1]]
	text, is := value.(string)
	if !is {
		if text, is = number(value); !is {
			return -1
		}
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return -1
	}
	return q.Value()
}

func specOf(vm map[string]any) map[string]any { return below(vm, "spec", "template", "spec") }

func below(object map[string]any, path ...string) map[string]any {
	for _, step := range path {
		object, _ = object[step].(map[string]any)
	}
	return object
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

// itemNamed returns the item of a list with a name, or nil when there is none.
func itemNamed(list any, name string) map[string]any {
	for _, item := range asList(list) {
		if nameOf(item) == name {
			object, _ := item.(map[string]any)
			return object
		}
	}
	return nil
}

// holdsOnly reports whether an object exists and has no other keys.
func holdsOnly(object map[string]any, keys ...string) bool {
	if object == nil {
		return false
	}
	allowed := map[string]bool{}
	for _, key := range keys {
		allowed[key] = true
	}
	for key := range object {
		if !allowed[key] {
			return false
		}
	}
	return true
}
