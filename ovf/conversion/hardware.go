package conversion

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/vmstencil/stencil/ovf"
)

// title describes an item for notes.
func title(item *ovf.Item) string {
	name := item.Name
	if name == "" {
		name = item.InstanceID
	}
	return fmt.Sprintf("%s %s", item.Type, name)
}

// leastMemory is the least memory of a VM in bytes.
const leastMemory = 1 << 20

// domain returns processors, memory and firmware.
func (s *system) domain() (map[string]any, error) {
	processors, cores, memory := uint64(0), uint64(0), int64(0)
	for i := range s.items {
		item := &s.items[i]
		switch item.Type {
		case ovf.ResourceProcessor:
			total, carry := bits.Add64(processors, item.Quantity, 0)
			// The limit of KubeVirt's field.
			if carry != 0 || total > 1<<32-1 {
				return nil, fmt.Errorf("it has more than 2^32-1 processors")
			}
			processors = total
			cores = max(cores, item.CoresPerSocket)
		case ovf.ResourceMemory:
			units := item.Units
			if units == "" && item.Quantity < leastMemory {
				units = "MegaBytes"
				s.note(ActionWarning, title(item), "its unit is not declared; %d is taken as MiB", item.Quantity)
			}
			size, err := ovf.Bytes(item.Quantity, units)
			if err != nil {
				return nil, fmt.Errorf("the item %s (line %d): %w", title(item), item.Line, err)
			}
			if memory += size; memory < 0 {
				return nil, fmt.Errorf("it has more than 2^63-1 bytes of memory")
			}
		default:
			continue
		}
		if item.Reservation != "" || item.Limit != "" || item.Weight != "" {
			s.note(ActionDropped, title(item), "reservation, limit and weight; the cluster's overcommitment applies")
		}
	}
	if memory == 0 && s.options.Instancetype == "" {
		const instead = "name an instance type, which has it (--instancetype, spec.instancetype)"
		if s.configuration == "" {
			return nil, fmt.Errorf("it declares no memory: %s", instead)
		}
		return nil, fmt.Errorf("it declares no memory in configuration %q: choose another one, or %s", s.configuration, instead)
	}
	if memory < leastMemory && s.options.Instancetype == "" {
		return nil, fmt.Errorf("it has %d bytes of memory; want at least 1 MiB", memory)
	}
	// The default of VMware and VirtualBox is a socket for each processor.
	processors = max(processors, 1)
	cpu := map[string]any{"cores": uint64(1), "sockets": processors}
	if cores > 1 {
		if processors%cores == 0 {
			cpu["cores"], cpu["sockets"] = cores, processors/cores
		} else {
			s.note(ActionChanged, "processors", "%d processors cannot be divided into sockets of %d cores; each is a socket", processors, cores)
		}
	}
	domain := map[string]any{}
	s.sizes(domain, cpu, quantity(memory))
	s.firmware(domain)
	return domain, nil
}

// sizes sets processors and memory, unless an instance type has them: KubeVirt denies both in one VirtualMachine.
func (s *system) sizes(domain, cpu map[string]any, memory string) {
	processors := fmt.Sprintf("%v sockets with %v cores", cpu["sockets"], cpu["cores"])
	if name := s.options.Instancetype; name != "" {
		s.note(ActionChanged, "processors", "%s in the package; VirtualMachines have those of the instance type %s", processors, name)
		s.note(ActionChanged, "memory", "%s in the package; VirtualMachines have that of the instance type %s", memory, name)
		return
	}
	s.note(ActionKept, "processors", "%s", processors)
	s.note(ActionKept, "memory", "%s", memory)
	domain["cpu"], domain["memory"] = cpu, map[string]any{"guest": memory}
}

// firmware sets the firmware always, because a preference could otherwise choose one with which the guest does not boot.
func (s *system) firmware(domain map[string]any) {
	bootloader := map[string]any{"bios": map[string]any{}}
	hardware := &s.source.Hardware
	switch {
	case hardware.Firmware == ovf.FirmwareEFI || s.os.architecture == "arm64":
		bootloader = map[string]any{"efi": map[string]any{"secureBoot": hardware.SecureBoot}}
		if hardware.SecureBoot {
			domain["features"] = map[string]any{"smm": map[string]any{"enabled": true}}
		}
		s.note(ActionKept, "firmware", "EFI, secure boot: %t; boot entries that are stored in EFI variables are lost", hardware.SecureBoot)
	case hardware.Firmware == "":
		s.note(ActionKept, "firmware", "BIOS, because the descriptor declares none")
	default:
		s.note(ActionKept, "firmware", "BIOS")
	}
	domain["firmware"] = map[string]any{"bootloader": bootloader}
}

// quantity formats bytes as a quantity of Kubernetes.
func quantity(size int64) string {
	for _, unit := range []struct {
		bits   int
		suffix string
	}{{30, "Gi"}, {20, "Mi"}, {10, "Ki"}} {
		if size > 0 && size%(1<<unit.bits) == 0 {
			return strconv.FormatInt(size>>unit.bits, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(size, 10)
}

// others reports the devices that templates do not have, and the settings of the platform.
func (s *system) others() {
	for i := range s.items {
		item := &s.items[i]
		if isDisk(item) {
			continue
		}
		switch item.Type {
		case ovf.ResourceProcessor, ovf.ResourceMemory, ovf.ResourceEthernet, ovf.ResourceCD, ovf.ResourceDVD,
			ovf.ResourceIDEController, ovf.ResourceSCSIController, ovf.ResourceOtherStorage:
		case ovf.ResourceFloppy, ovf.ResourceUSBController, ovf.ResourceGraphics, ovf.ResourceSound, ovf.ResourceSerialPort, ovf.ResourceParallelPort:
			s.note(ActionDropped, title(item), "KubeVirt has its own devices of this kind, or none")
		default:
			action := ActionDropped
			if item.Required {
				action = ActionWarning
			}
			s.note(action, title(item), "%sdevices of this kind (resource type %d, %s) are not supported", required(item), item.Type, orNone(item.SubType))
		}
	}
	for _, setting := range s.source.Hardware.Config {
		s.note(ActionDropped, "setting "+setting.Key, "settings of other platforms are not applied")
	}
	for _, extension := range s.source.Extensions {
		s.note(ActionDropped, "section "+extension.Local, "it belongs to another product and is not required")
	}
}

func required(item *ovf.Item) string {
	if item.Required {
		return "the descriptor requires it, but "
	}
	return ""
}

func orNone(text string) string {
	if text == "" {
		return "no subtype"
	}
	return text
}
