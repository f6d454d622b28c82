package launcher

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/vmstencil/stencil/defaulting/domain"
)

// Definer defines a domain with libvirt, and returns libvirt's description. The domain has no
// name and no UUID; the Definer adds them. The domain no longer exists when Define returns.
type Definer interface {
	Define(ctx context.Context, xml string) (string, error)
}

// RejectedError means that libvirt rejected a domain. Any other error of a Definer is not caused
// by the domain.
type RejectedError struct {
	// Message is libvirt's message.
	Message string
}

func (e *RejectedError) Error() string { return "libvirt rejects the domain: " + e.Message }

// Layout has libvirt lay out a shape the way virt-launcher does.
func Layout(ctx context.Context, definer Definer, shape domain.Shape) (*domain.Layout, error) {
	wanted := shape.Domain()
	ports := portsOf(shape, domain.CountPCI(wanted.Devices))

	if ports.placeholders > 0 {
		crowded := *wanted
		devices := *wanted.Devices
		crowded.Devices = &devices
		devices.Interfaces = withPlaceholders(devices.Interfaces, ports.placeholders, shape.VirtioModel())
		answer, err := define(ctx, definer, &crowded)
		if err != nil {
			return nil, err
		}
		wanted.Devices = readBack(answer.Devices, wanted.Devices)
	}
	answer, err := defineWithPorts(ctx, definer, wanted, ports.appended, shape.Addressed())
	if err != nil {
		return nil, err
	}
	return shape.Read(answer), nil
}

// defineWithPorts appends root ports to a domain and defines it. virt-launcher defines it without
// these ports before, and ignores the result unless libvirt rejects the domain. That define is
// repeated only where it matters: if the final one is rejected, for the message, and if the
// VirtualMachine requests addresses, which can be on a bus that only the appended ports provide.
func defineWithPorts(ctx context.Context, definer Definer, wanted *libvirtxml.Domain, appended int, addressed bool) (*libvirtxml.Domain, error) {
	if appended == 0 {
		return define(ctx, definer, wanted)
	}
	if addressed {
		if _, err := define(ctx, definer, wanted); err != nil {
			return nil, err
		}
	}
	devices := *wanted.Devices
	with := *wanted
	with.Devices = &devices
	devices.Controllers = slices.Clone(devices.Controllers)
	appendRootPorts(&devices, appended)
	answer, err := define(ctx, definer, &with)
	var rejected *RejectedError
	if errors.As(err, &rejected) && !addressed {
		if _, earlier := define(ctx, definer, wanted); earlier != nil {
			return nil, earlier
		}
	}
	return answer, err
}

func define(ctx context.Context, definer Definer, d *libvirtxml.Domain) (*libvirtxml.Domain, error) {
	// The domain's own Marshal indents, which libvirt would have to skip.
	text, err := xml.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("writing the domain: %w", err)
	}
	described, err := definer.Define(ctx, string(text))
	if err != nil {
		return nil, err
	}
	answer := &libvirtxml.Domain{}
	if err := answer.Unmarshal(described); err != nil {
		return nil, fmt.Errorf("reading libvirt's description: %w", err)
	}
	if answer.Devices == nil {
		return nil, fmt.Errorf("reading libvirt's description: it has no devices")
	}
	return answer, nil
}

func withPlaceholders(interfaces []libvirtxml.DomainInterface, count int, model string) []libvirtxml.DomainInterface {
	all := append([]libvirtxml.DomainInterface(nil), interfaces...)
	for number := range count {
		all = append(all, libvirtxml.DomainInterface{
			MAC:    &libvirtxml.DomainInterfaceMAC{Address: fmt.Sprintf("02:00:00:01:00:%02x", number)},
			Source: &libvirtxml.DomainInterfaceSource{Ethernet: &libvirtxml.DomainInterfaceSourceEthernet{}},
			Target: &libvirtxml.DomainInterfaceTarget{Dev: fmt.Sprintf("placeholder-%d", number), Managed: "no"},
			Model:  &libvirtxml.DomainInterfaceModel{Type: model},
		})
	}
	return all
}
