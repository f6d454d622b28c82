package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
)

// answering is the state of one request while its response is computed.
type answering struct {
	request  *defaulting.Request
	chosen   chosenReleases
	document document
	response *defaulting.Response
}

// decode decodes a VirtualMachine twice: as the typed object, and as a document that preserves
// fields that this version of KubeVirt's types does not have.
func decode(text json.RawMessage) (*kubevirtv1.VirtualMachine, document, error) {
	if len(text) == 0 {
		return nil, nil, defaulting.Malformed("the request has no vm")
	}
	vm := &kubevirtv1.VirtualMachine{}
	if err := json.Unmarshal(text, vm); err != nil {
		return nil, nil, defaulting.Malformed("reading the VirtualMachine: %v", err)
	}
	var document document
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, nil, defaulting.Malformed("reading the VirtualMachine: %v", err)
	}
	return vm, document, nil
}

// set writes a default if the policy permits it.
func (a *answering) set(set domain.Set) {
	if !domain.Allowed(set.Path, a.request.Policy) {
		return
	}
	value, err := plain(set.Value)
	if err != nil {
		a.skip(set.Path.String(), err.Error())
		return
	}
	operations, err := a.document.set(set.Path, value)
	if err != nil {
		a.skip(set.Path.String(), err.Error())
		return
	}
	a.response.Patch = append(a.response.Patch, operations...)
	a.response.Set = append(a.response.Set, defaulting.Set{Path: set.Path.String(), Value: value, Source: set.Source})
}

func (a *answering) skip(path, reason string) {
	a.response.Skipped = append(a.response.Skipped, defaulting.Skipped{Path: path, Reason: reason})
}

func (a *answering) skipAddresses(reason string) {
	if on := a.request.Policy.PCIAddress; on == nil || *on {
		a.skip("spec.template.spec.domain.devices[*].pciAddress", reason)
	}
}

// pin replaces the alias of a machine type by its version.
func (a *answering) pin(vm *kubevirtv1.VirtualMachine, prepared *domain.PreparedVM, layout *domain.Layout) {
	written := ""
	if m := vm.Spec.Template.Spec.Domain.Machine; m != nil {
		written = m.Type
	}
	if layout.MachineType != "" && layout.MachineType != written {
		a.set(domain.Set{Path: domain.In("domain", "machine", "type"), Value: layout.MachineType, Source: defaulting.FromLibvirt})
	}
	prepared.Spec.Domain.Machine.Type = layout.MachineType
}

// place writes the addresses that the API has a field for.
func (a *answering) place(prepared *domain.PreparedVM, shape domain.Shape, layout *domain.Layout) {
	reserved := domain.Reserved(prepared, shape)
	write := func(path domain.Path, at domain.Address, ok bool) {
		switch {
		case !ok:
		case reserved[at]:
			a.skip(path.String(), "a device that the VM does not have when it is started requests the address")
		case !layout.Writable(at):
			a.skip(path.String(), "the device is behind a bridge to conventional PCI")
		default:
			a.set(domain.Set{Path: path, Value: at.String(), Source: defaulting.FromLibvirt})
		}
	}
	shown := map[int]bool{}
	for _, disk := range shape.Disks {
		shown[disk.Index] = true
		if disk.Writable() && disk.Address == nil {
			at, ok := layout.Disks[disk.Index]
			write(domain.DiskAddress(disk.Index), at, ok)
		}
	}
	for i := range prepared.Spec.Domain.Devices.Disks {
		disk := prepared.Spec.Domain.Devices.Disks[i].Disk
		if !shown[i] && disk != nil && disk.Bus == kubevirtv1.DiskBusVirtio && disk.PciAddress == "" {
			a.skip(domain.DiskAddress(i).String(), "the disk is plugged in once the guest runs")
		}
	}
	for i := range prepared.Spec.Domain.Devices.Interfaces {
		if prepared.Spec.Domain.Devices.Interfaces[i].PciAddress == "" {
			at, ok := layout.NICs[i]
			write(domain.InterfaceAddress(i), at, ok)
		}
	}
}

// identify writes the random values: the firmware UUID, except on update, and MAC addresses.
func (a *answering) identify(prepared *domain.PreparedVM, identities Identities) {
	if a.request.Operation != defaulting.Update {
		if firmware := prepared.Spec.Domain.Firmware; firmware == nil || firmware.UUID == "" {
			a.random(domain.In("domain", "firmware", "uuid"), identities.UUID)
		}
	}
	interfaces := prepared.Spec.Domain.Devices.Interfaces
	used := map[string]bool{}
	for i := range interfaces {
		if address, err := net.ParseMAC(interfaces[i].MacAddress); err == nil {
			used[address.String()] = true
		}
	}
	for i := range interfaces {
		if interfaces[i].MacAddress == "" {
			a.random(domain.InterfaceMAC(i), func() string { return unused(identities, used) })
		}
	}
}

// maxDraws bounds how often an address is drawn again because the VirtualMachine already has
// it. With 46 random bits the second draw does not happen by chance.
const maxDraws = 8

// unused draws an address that no other interface of the VirtualMachine has, and adds it to
// used.
func unused(identities Identities, used map[string]bool) string {
	address := identities.MAC()
	for draw := 1; used[address] && draw < maxDraws; draw++ {
		address = identities.MAC()
	}
	used[address] = true
	return address
}

func (a *answering) random(path domain.Path, value func() string) {
	if domain.Allowed(path, a.request.Policy) {
		a.set(domain.Set{Path: path, Value: value(), Source: defaulting.FromStencil})
	}
}

// finish adds the VirtualMachine itself to the response, unless only the patch was requested.
func (a *answering) finish() (*defaulting.Response, error) {
	if a.request.PatchOnly {
		return a.response, nil
	}
	if len(a.response.Patch) == 0 {
		a.response.VM = a.request.VM
		return a.response, nil
	}
	text, err := json.Marshal(a.document)
	if err != nil {
		return nil, fmt.Errorf("writing the VirtualMachine: %w", err)
	}
	a.response.VM = text
	return a.response, nil
}

// devices converts the devices of a layout to those of a response.
func devices(layout *domain.Layout) []defaulting.Device {
	list := make([]defaulting.Device, 0, len(layout.Devices))
	for _, device := range layout.Devices {
		shown := defaulting.Device{Kind: device.Kind, Model: strings.TrimSpace(device.Model), Index: device.Number, Address: device.Address.String()}
		if device.List != "" {
			shown.Path = "spec.template.spec.domain.devices." + device.List + "[" + strconv.Itoa(device.Index) + "]"
		}
		list = append(list, shown)
	}
	return list
}

// sameAddresses compares the addresses of the devices that the VirtualMachine requests,
// also where the address is not written: a guest that was started without the addresses must
// find all of its devices at the same addresses.
func sameAddresses(a, b *domain.Layout) bool {
	return maps.Equal(requestedAddresses(a), requestedAddresses(b))
}

// place identifies a device in the VirtualMachine.
type place struct {
	list  string
	index int
}

func requestedAddresses(layout *domain.Layout) map[place]domain.Address {
	addresses := map[place]domain.Address{}
	for _, device := range layout.Devices {
		if device.List != "" {
			addresses[place{device.List, device.Index}] = device.Address
		}
	}
	return addresses
}
