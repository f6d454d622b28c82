package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"libvirt.org/go/libvirtxml"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/engine"
)

// fake assigns consecutive addresses to devices.
type fake struct {
	defines atomic.Int64
	// bridge places every interface behind a bridge. moves makes it ignore requested addresses.
	bridge, moves bool
	// fail is returned instead of a response.
	fail error
	qemu string
}

func (f *fake) Versions() (string, string, bool) { return "9.0.0", f.qemu, true }

func (f *fake) Define(_ context.Context, xml string) (string, error) {
	number := f.defines.Add(1)
	if f.fail != nil {
		return "", f.fail
	}
	d := &libvirtxml.Domain{}
	if err := d.Unmarshal(xml); err != nil {
		return "", err
	}
	if d.OS.Type.Machine == "q35" {
		d.OS.Type.Machine = "pc-q35-9.9"
	}
	next := uint(1)
	if f.moves {
		next += uint(number)
	}
	place := func(model string) *libvirtxml.DomainAddress {
		bus, zero := next, uint(0)
		next++
		d.Devices.Controllers = append(d.Devices.Controllers, libvirtxml.DomainController{Type: "pci", Index: &bus, Model: model})
		return &libvirtxml.DomainAddress{PCI: &libvirtxml.DomainAddressPCI{Domain: &zero, Bus: &bus, Slot: &zero, Function: &zero}}
	}
	for i := range d.Devices.Disks {
		if address := d.Devices.Disks[i].Address; address != nil && address.PCI != nil && !f.moves {
			d.Devices.Controllers = append(d.Devices.Controllers, libvirtxml.DomainController{Type: "pci", Index: address.PCI.Bus, Model: "pcie-root-port"})
			next = max(next, *address.PCI.Bus+1)
		}
	}
	for i := range d.Devices.Disks {
		if disk := &d.Devices.Disks[i]; (disk.Address == nil || f.moves) && disk.Target.Bus == "virtio" {
			disk.Address = place("pcie-root-port")
		}
	}
	model := "pcie-root-port"
	if f.bridge {
		model = "pcie-to-pci-bridge"
	}
	for i := range d.Devices.Interfaces {
		if nic := &d.Devices.Interfaces[i]; nic.Address == nil {
			nic.Address = place(model)
		}
	}
	for range 3 {
		place("pcie-root-port")
	}
	return d.Marshal()
}

// counted generates identities with a number in them.
type counted struct{ number atomic.Int64 }

func (c *counted) UUID() string { return fmt.Sprintf("uuid-%d", c.number.Add(1)) }
func (c *counted) MAC() string  { return fmt.Sprintf("mac-%d", c.number.Add(1)) }

func newEngine(f *fake) *engine.Engine {
	return engine.New(engine.Options{Libvirt: f, Identities: &counted{}, Version: "v0"})
}

// filled returns the set fields of a response by path.
func filled(response *defaulting.Response) map[string]any {
	fields := map[string]any{}
	for _, set := range response.Set {
		fields[set.Path[len("spec.template.spec."):]] = set.Value
	}
	return fields
}
