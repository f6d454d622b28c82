package server

import (
	"flag"
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/defaulting"
)

// Defaulting are the flags of a server that has defaults filled in. All servers of an installation have the same policy.
type Defaulting struct {
	// Socket is the socket of the defaulter; empty disables defaulting.
	Socket string

	machineType, mac                      string
	pciAddress, firmwareUUID, cpu, memory bool
}

// Bind registers the flags, with their defaults.
func (d *Defaulting) Bind(flags *flag.FlagSet) {
	flags.StringVar(&d.Socket, "defaulting-socket", "",
		"Unix socket on which stencil-defaulter fills in defaults that guests see; empty fills in none.")
	flags.StringVar(&d.machineType, "defaulting-machine-type", string(defaulting.MachineTypePin),
		"How the alias of a machine type is handled: pin replaces it by its version, keep leaves it unchanged.")
	flags.BoolVar(&d.pciAddress, "defaulting-pci-address", true,
		"Write the PCI addresses of virtio disks and of interfaces.")
	flags.BoolVar(&d.firmwareUUID, "defaulting-firmware-uuid", true,
		"Write a random UUID of the firmware on creation where KubeVirt has made none.")
	flags.StringVar(&d.mac, "defaulting-mac", string(defaulting.MACNever),
		"How an interface without MAC address is handled: never leaves it to KubeVirt or a pool manager, generate writes a random address that no VirtualMachine of the namespace has, unless a pool manager manages the namespace.")
	flags.BoolVar(&d.cpu, "defaulting-cpu", true,
		"Write the CPU topology of VMs without an instance type.")
	flags.BoolVar(&d.memory, "defaulting-memory", true,
		"Write the guest memory of VMs without an instance type.")
}

// Validate returns everything that is wrong with the flags.
func (d *Defaulting) Validate() []error {
	var problems []error
	if d.machineType != string(defaulting.MachineTypePin) && d.machineType != string(defaulting.MachineTypeKeep) {
		problems = append(problems, fmt.Errorf("--defaulting-machine-type: must be %s or %s, not %q", defaulting.MachineTypePin, defaulting.MachineTypeKeep, d.machineType))
	}
	if d.mac != string(defaulting.MACNever) && d.mac != string(defaulting.MACGenerate) {
		problems = append(problems, fmt.Errorf("--defaulting-mac: must be %s or %s, not %q", defaulting.MACNever, defaulting.MACGenerate, d.mac))
	}
	return problems
}

// Policy returns the policy that the flags specify.
func (d *Defaulting) Policy() defaulting.Policy {
	return defaulting.Policy{
		MachineType:  defaulting.MachineTypePolicy(d.machineType),
		PCIAddress:   ptr.To(d.pciAddress),
		FirmwareUUID: ptr.To(d.firmwareUUID),
		MAC:          defaulting.MACPolicy(d.mac),
		CPU:          ptr.To(d.cpu),
		Memory:       ptr.To(d.memory),
	}
}

// GeneratesMAC reports whether MAC addresses are generated.
func (d *Defaulting) GeneratesMAC() bool {
	return d.Socket != "" && d.mac == string(defaulting.MACGenerate)
}
