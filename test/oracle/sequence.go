package oracle

import (
	"context"
	"fmt"
	"strconv"

	virtv1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/api"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/cli"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/network"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/util"
	"libvirt.org/go/libvirt"

	"github.com/vmstencil/stencil/defaulting/launcher"
)

// connection is a libvirt to KubeVirt's code: the one that the defaulter uses.
type connection struct {
	cli.Connection
	ctx     context.Context
	definer launcher.Definer
	// last is how libvirt described what was defined last.
	last string
}

// DomainDefineXML implements cli.Connection.
func (c *connection) DomainDefineXML(xml string) (cli.VirDomain, error) {
	described, err := c.definer.Define(c.ctx, xml)
	if err != nil {
		return nil, err
	}
	c.last = described
	return defined{xml: described}, nil
}

// defined is a domain that libvirt has defined and no longer stores.
type defined struct {
	cli.VirDomain
	xml string
}

// GetXMLDesc implements cli.VirDomain.
func (d defined) GetXMLDesc(libvirt.DomainXMLFlags) (string, error) { return d.xml, nil }

// Free implements cli.VirDomain.
func (defined) Free() error { return nil }

// What virt-launcher calls hotplugDefaultTotalPorts and so on.
const (
	largeMemory            = 2 << 30
	totalPorts, freePorts  = 8, 3
	totalLarge, freeLarge  = 16, 6
	interfaceSlots, maxBus = 4, 31
)

// start takes virt-launcher's steps with a domain, and returns libvirt's description of the last of them. Defining, reading back and the placeholders
// are KubeVirt's code. Functions of its package virtwrap that cannot be called from elsewhere compute the numbers of placeholders and ports
// (calculatePlaceholderCount, calculateExtraControllerCount, appendPCIeRootPortControllers in manager.go); these few lines are written after them,
// with KubeVirt's own count of PCI devices.
func (r Release) start(ctx context.Context, definer launcher.Definer, instance *virtv1.VirtualMachineInstance, spec *api.DomainSpec) (string, error) {
	c := &connection{ctx: ctx, definer: definer}
	define := func(instance *virtv1.VirtualMachineInstance, spec *api.DomainSpec) (cli.VirDomain, error) {
		return util.SetDomainSpecStrWithHooks(c, instance, spec)
	}
	if !r.SupportsPCIeHotplug(&instance.Spec) {
		_, err := define(instance, spec)
		return c.last, err
	}
	placeholders, err := placeholderCount(instance)
	if err != nil {
		return "", err
	}
	ports := 0
	if instance.Annotations[virtv1.PlacePCIDevicesOnRootComplex] != "true" {
		used, err := converter.CountPCIDevices(spec)
		if err != nil {
			return "", fmt.Errorf("counting PCI devices: %w", err)
		}
		total, free := totalPorts, freePorts
		if spec.Memory.Value > largeMemory {
			total, free = totalLarge, freeLarge
		}
		ports = max(0, max(total-used, free)-placeholders)
	}
	if _, err := network.WithNetworkIfacesResources(instance, spec, placeholders, define); err != nil {
		return "", err
	}
	if ports > 0 {
		appendPorts(spec, ports)
		if _, err := define(instance, spec); err != nil {
			return "", err
		}
	}
	return c.last, nil
}

func placeholderCount(instance *virtv1.VirtualMachineInstance) (int, error) {
	interfaces := len(instance.Spec.Domain.Devices.Interfaces)
	if text, found := instance.Annotations[virtv1.PciInterfaceSlotCountAnnotation]; found {
		slots, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("reading the annotation %s: %w", virtv1.PciInterfaceSlotCountAnnotation, err)
		}
		return max(0, slots-interfaces), nil
	}
	if instance.Annotations[virtv1.PlacePCIDevicesOnRootComplex] == "true" || interfaces == 0 {
		return 0, nil
	}
	return max(0, interfaceSlots-interfaces), nil
}

func appendPorts(spec *api.DomainSpec, count int) {
	next := 1
	for _, controller := range spec.Devices.Controllers {
		if index, err := strconv.Atoi(controller.Index); err == nil && controller.Type == "pci" {
			next = max(next, index+1)
		}
	}
	for index := next; index < next+count && index <= maxBus; index++ {
		spec.Devices.Controllers = append(spec.Devices.Controllers, api.Controller{
			Type: "pci", Index: strconv.Itoa(index), Model: api.ControllerModelPCIeRootPort,
		})
	}
}
