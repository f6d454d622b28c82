package ovf

import (
	"slices"
	"strconv"
	"strings"
)

func (d *decoder) hardware(section *Element, h *Hardware) error {
	h.Transports = strings.Fields(section.Attribute("transport"))
	defer func() {
		// VMs of Hyper-V's second generation have no BIOS.
		if h.Firmware == "" && slices.Contains(h.Types, "Microsoft:Hyper-V:SubType:2") {
			h.Firmware = FirmwareEFI
		}
	}()
	seen := map[string]bool{}
	for _, e := range section.Children {
		switch {
		case !isFormat(e.Space):
			h.setting(e)
		case e.Local == "Info":
		case e.Local == "System":
			h.Types = append(h.Types, strings.Fields(e.ChildText("VirtualSystemType"))...)
		case e.Local == "Item", e.Local == "StorageItem", e.Local == "EthernetPortItem":
			if len(h.Items) == MaxItems {
				return section.fail("contains more than %d items", MaxItems)
			}
			item, err := d.item(e)
			if err != nil {
				return err
			}
			if item.Type == 0 && e.ChildText("Type") == "tpm" {
				// oVirt has no other sign of a TPM.
				h.TPM = true
				continue
			}
			if item.Type == 0 {
				d.warn(e, "is a device of resource type 0 and is ignored; KubeVirt has its own, or none")
				continue
			}
			if strings.EqualFold(item.SubType, subTypeTPM) {
				h.TPM = true
				continue
			}
			if plain := len(item.Configurations) == 0 && !item.bounds() && item.InstanceID != ""; plain && seen[item.InstanceID] {
				d.warn(e, "has the instance ID of another item, %s; both are used", shown(item.InstanceID))
			} else if plain {
				seen[item.InstanceID] = true
			}
			h.Items = append(h.Items, item)
		default:
			d.warn(e, "is ignored; a VirtualHardwareSection contains a system and items")
		}
	}
	return nil
}

func (d *decoder) item(e *Element) (Item, error) {
	i := Item{Required: required(e), Configurations: strings.Fields(e.Attribute("configuration")), Bound: e.Attribute("bound"), Line: e.line}
	typed := false
	for _, c := range e.Children {
		typed = typed || c.Local == "ResourceType"
		if !isItemField(c.Space) {
			if c.Local == "CoresPerSocket" {
				cores, err := quantity(c)
				if err != nil {
					return i, err
				}
				i.CoresPerSocket = cores
			} else if key := c.Attribute("key"); key != "" {
				i.Config = append(i.Config, Setting{key, c.Attribute("value")})
			}
			continue
		}
		if err := i.field(c); err != nil {
			return i, err
		}
	}
	if !typed {
		return i, e.fail("the item %s has no resource type", shown(i.InstanceID))
	}
	if i.Type != ResourceProcessor {
		return i, nil
	}
	return i, i.topology(e)
}

// topology reads the sockets, cores and threads of oVirt, whose export domains have no quantity of processors. Threads become cores, so that the
// number of sockets remains.
func (i *Item) topology(e *Element) error {
	numbers := map[string]uint64{"num_of_sockets": 0, "cpu_per_socket": 1, "threads_per_cpu": 1}
	for _, local := range []string{"num_of_sockets", "cpu_per_socket", "threads_per_cpu"} {
		text := e.ChildText(local)
		if text == "" {
			continue
		}
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return e.fail("%s is %s; want an integer from 0 to 65535", local, shown(text))
		}
		numbers[local] = number
	}
	sockets, cores := numbers["num_of_sockets"], numbers["cpu_per_socket"]*numbers["threads_per_cpu"]
	if sockets == 0 {
		return nil
	}
	i.CoresPerSocket = cores
	if i.Quantity == 0 {
		i.Quantity = sockets * cores
	}
	return nil
}

// field reads one field. Fields that do not matter to a VM are ignored.
func (i *Item) field(e *Element) (err error) {
	switch e.Local {
	case "InstanceID", "InstanceId":
		i.InstanceID = e.Text
	case "Parent":
		i.Parent = e.Text
	case "ResourceType":
		number, err := strconv.ParseUint(e.Text, 10, 16)
		if err != nil {
			return e.fail("the resource type is %s; want an integer from 0 to 65535", shown(e.Text))
		}
		i.Type = ResourceType(number)
	case "ResourceSubType":
		i.SubType = e.Text
	case "ElementName":
		i.Name = e.Text
	case "Caption":
		if i.Name == "" {
			i.Name = e.Text
		}
	case "Description":
		i.Description = e.Text
	case "Address":
		i.Address = e.Text
	case "BusNumber":
		if i.Address == "" {
			i.Address = e.Text
		}
	case "MACAddress":
		// Of oVirt.
		if i.Address == "" {
			i.Address = e.Text
		}
	case "AddressOnParent":
		i.AddressOnParent = e.Text
	case "HostResource":
		if e.Text != "" {
			i.HostResources = append(i.HostResources, e.Text)
		}
	case "Connection":
		if e.Text != "" {
			i.Connections = append(i.Connections, e.Text)
		}
	case "AllocationUnits":
		i.Units = e.Text
	case "VirtualQuantity":
		i.Quantity, err = quantity(e)
	case "cpu_per_socket":
		// Of oVirt.
		i.CoresPerSocket, err = quantity(e)
	case "Reservation":
		i.Reservation = e.Text
	case "Limit":
		i.Limit = e.Text
	case "Weight":
		i.Weight = e.Text
	}
	return err
}

func quantity(e *Element) (uint64, error) {
	if e.Text == "" {
		return 0, nil
	}
	value, err := strconv.ParseUint(e.Text, 10, 64)
	if err != nil {
		return 0, e.fail("is %s; want an integer from 0 to 2^64-1", shown(e.Text))
	}
	return value, nil
}

// setting reads a setting of VMware (vmw:Config, vmw:ExtraConfig) or Xen (VirtualSystemOtherConfigurationData). Firmware and TPM become fields.
func (h *Hardware) setting(e *Element) {
	key, value := e.Attribute("key"), e.Attribute("value")
	if e.Local == "VirtualSystemOtherConfigurationData" {
		key, value = e.Attribute("Name"), e.ChildText("Value")
	}
	switch strings.ToLower(key) {
	case "":
		return
	case "firmware":
		h.firmware(value)
	case "bootoptions.efisecurebootenabled", "uefi.secureboot.enabled":
		h.SecureBoot = isTrue(value)
	case "tpm.present", "vtpm.present", "tpm20.enabled":
		h.TPM = isTrue(value)
	case "hvm_boot_params", "platform":
		// Semicolon-separated pairs, such as order=dc;firmware=uefi.
		for pair := range strings.SplitSeq(value, ";") {
			switch name, value, _ := strings.Cut(strings.TrimSpace(pair), "="); strings.ToLower(name) {
			case "firmware":
				h.firmware(value)
			case "secureboot":
				h.SecureBoot = isTrue(value)
			case "vtpm":
				h.TPM = isTrue(value)
			}
		}
	default:
		h.Config = append(h.Config, Setting{key, value})
	}
}

// oVirt reads the firmware from the element that oVirt, RHV and OLVM add: https://github.com/oVirt/ovirt-engine, enumeration BiosType.
func (h *Hardware) oVirt(value string) {
	switch value {
	case "1", "2", "I440FX_SEA_BIOS", "Q35_SEA_BIOS":
		h.Firmware = FirmwareBIOS
	case "3", "Q35_OVMF":
		h.Firmware = FirmwareEFI
	case "4", "Q35_SECURE_BOOT":
		h.Firmware, h.SecureBoot = FirmwareEFI, true
	}
}

// firmware sets the firmware from a name of one of the platforms: efi, uefi, EFI64, bios.
func (h *Hardware) firmware(name string) {
	switch {
	case strings.Contains(strings.ToLower(name), "efi"):
		h.Firmware = FirmwareEFI
	case strings.Contains(strings.ToLower(name), "bios"):
		h.Firmware = FirmwareBIOS
	}
}

// virtualBox reads the firmware and the TPM from the description that VirtualBox adds (vbox:Machine). Its children have the namespace of the
// document.
func (h *Hardware) virtualBox(e *Element) {
	switch e.Local {
	case "Firmware":
		h.firmware(e.Attribute("type"))
	case "TrustedPlatformModule":
		kind := e.Attribute("type")
		h.TPM = kind != "" && !strings.EqualFold(kind, "none")
	case "SecureBoot":
		h.SecureBoot = isTrue(e.Attribute("enabled"))
	}
	for _, c := range e.Children {
		h.virtualBox(c)
	}
}
