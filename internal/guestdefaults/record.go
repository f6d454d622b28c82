package guestdefaults

import (
	"encoding/json"
	"fmt"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/internal/pinned"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	machineTypePath = "spec.template.spec.domain.machine.type"
	devicesPath     = "spec.template.spec.domain.devices."
)

// Domain is the path of the guest's hardware description in a VirtualMachine.
var Domain = mutation.Pointer{"spec", "template", "spec", "domain"}

// in returns the object under a key of the hardware description of a VM, nil if there is none.
func in(object map[string]any, key string) map[string]any {
	return machine.MapAt(object, Domain.Child(key)...)
}

// recorded decodes the stored annotation. An annotation that cannot be decoded counts as empty.
func recorded(text string) pinned.Record {
	read, _, err := pinned.Read(map[string]any{contract.AnnotationDefaultsApplied: text})
	if err != nil {
		return pinned.Record{}
	}
	return read
}

// record returns the annotation for a response of the defaulter. before is the earlier content of the annotation.
func record(before pinned.Record, object map[string]any, response *defaulting.Response) (string, error) {
	a := pinned.Record{
		Defaulter: response.Environment.Defaulter,
		Libvirt:   response.Environment.Libvirt,
		QEMU:      response.Environment.QEMU,
		KubeVirt:  response.Environment.KubeVirt,
		Machine:   machine.StringAt(in(object, "machine"), "type"),
		Addresses: currentAddresses(before.Addresses, object),
	}
	if a.Machine == before.Machine && pinned.VersionOf(a.Machine, before.Alias) {
		a.Alias = before.Alias
	}
	names := namesOf(object, response)
	for _, set := range response.Set {
		value, _ := set.Value.(string)
		if set.Path == machineTypePath {
			a.Machine, a.Alias = value, a.Machine
			continue
		}
		device, isAddress := strings.CutSuffix(strings.TrimPrefix(set.Path, devicesPath), ".pciAddress")
		if name := names[strings.TrimSuffix(device, ".disk")]; isAddress && name != "" {
			if a.Addresses == nil {
				a.Addresses = map[string]string{}
			}
			a.Addresses[name] = value
		}
	}
	text, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("writing the annotation %s: %w", contract.AnnotationDefaultsApplied, err)
	}
	return string(text), nil
}

// currentAddresses returns the recorded addresses that the object still has.
func currentAddresses(earlier map[string]string, object map[string]any) map[string]string {
	var current map[string]string
	for _, list := range []string{"disks", "interfaces"} {
		items, _ := in(object, "devices")[list].([]any)
		for _, item := range items {
			device, _ := item.(map[string]any)
			name := list + "/" + machine.StringAt(device, "name")
			address := machine.StringAt(device, "pciAddress")
			if list == "disks" {
				address = machine.StringAt(machine.MapAt(device, "disk"), "pciAddress")
			}
			if address != "" && earlier[name] == address {
				if current == nil {
					current = map[string]string{}
				}
				current[name] = address
			}
		}
	}
	return current
}

// namesOf maps the positions of the devices of a VM, with its defaults, to their names: disks[0] to disks/root.
func namesOf(object map[string]any, response *defaulting.Response) map[string]string {
	names := map[string]string{}
	add := func(list string, first int, items []any) {
		for i, item := range items {
			if device, ok := item.(map[string]any); ok {
				names[fmt.Sprintf("%s[%d]", list, first+i)] = list + "/" + machine.StringAt(device, "name")
			}
		}
	}
	for _, list := range []string{"disks", "interfaces"} {
		items, _ := in(object, "devices")[list].([]any)
		add(list, 0, items)
	}
	for _, set := range response.Set {
		place := strings.TrimPrefix(set.Path, devicesPath)
		if items, ok := set.Value.([]any); ok && place == "interfaces" {
			add(place, 0, items)
		}
		if disk, ok := set.Value.(map[string]any); ok && strings.HasPrefix(place, "disks[") && strings.HasSuffix(place, "]") && disk["name"] != nil {
			names[place] = "disks/" + machine.StringAt(disk, "name")
		}
	}
	return names
}

// Stamp sets the two annotations about defaults, and discards the values in the request. An empty text removes the
// annotation.
func Stamp(vm machine.Object, p *mutation.Patch, applied, failed string) {
	want := map[string]string{contract.AnnotationDefaultsApplied: applied, contract.AnnotationDefaultsFailed: failed}
	at := mutation.Pointer{"metadata", "annotations"}
	if vm.Annotations == nil {
		annotations := map[string]any{}
		for key, value := range want {
			if value != "" {
				annotations[key] = value
			}
		}
		if len(annotations) > 0 && vm.Metadata != nil {
			p.Put(vm.Metadata, at[:1], "annotations", annotations)
		}
		return
	}
	for _, key := range []string{contract.AnnotationDefaultsApplied, contract.AnnotationDefaultsFailed} {
		switch value := want[key]; {
		case value == "":
			p.Drop(vm.Annotations, at, key)
		case vm.Annotations[key] != value:
			p.Put(vm.Annotations, at, key, value)
		}
	}
}
