package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/template/plain"
)

// ExportDisk is a disk of the template that the package contains.
type ExportDisk struct {
	// Volume is the name of the volume in the VirtualMachine.
	Volume string
	// File is the name (href), the size in bytes and the compression of the file. Its ID is chosen by Export.
	File ovf.File
	// Format is the URI of the format, such as [ovf.FormatVMDKStream].
	Format string
	// Capacity is the size of the disk as the guest sees it, in bytes. Populated is an estimate of the used bytes, and -1 if it is not known.
	Capacity, Populated int64
}

// ExportOptions specify how a template becomes a package.
type ExportOptions struct {
	// VM is the VirtualMachine that the template renders with the defaults of its parameters, with its instance type applied. It is decoded JSON.
	// The hardware of the descriptor is read from it.
	VM map[string]any
	// Disks are the disks with content, in any order.
	Disks []ExportDisk
}

// Exported is a package that can be written.
type Exported struct {
	// Envelope has the files of the disks in the order of the options, and then the file with the template.
	Envelope *ovf.Envelope
	// Template is the content of the last file.
	Template []byte
	Notes    []Note
}

// export is the state of one call of Export.
type export struct {
	result *Exported
	system *ovf.System
	next   int
}

// Export makes a package from a template. It fails if a disk is not a volume of the VirtualMachine, and if the VirtualMachine has no memory.
func Export(t *v1beta1.VirtualMachineTemplate, options ExportOptions) (*Exported, error) {
	t = t.DeepCopy()
	clean(t)
	t.APIVersion, t.Kind = v1beta1.GroupVersion.String(), "VirtualMachineTemplate"
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("exporting the template %s: encoding it: %w", t.Name, err)
	}
	if len(raw) > MaxTemplateBytes {
		return nil, fmt.Errorf("exporting the template %s: it is larger than %d KiB", t.Name, MaxTemplateBytes>>10)
	}
	x := &export{result: &Exported{Envelope: &ovf.Envelope{Language: "en-US"}, Template: raw}, system: &ovf.System{ID: label(t.Name, "vm"), Name: t.Name, Info: "A VirtualMachineTemplate"}}
	x.system.Annotation = t.Annotations["description"]
	if err := x.hardware(&options); err != nil {
		return nil, fmt.Errorf("exporting the template %s: %w", t.Name, err)
	}
	x.parameters(t.Spec.Parameters)
	x.embed(t, &options)
	x.result.Envelope.Systems = []ovf.System{*x.system}
	return x.result, nil
}

func (x *export) note(action Action, source, result string, arguments ...any) {
	x.result.Notes = append(x.result.Notes, Note{action, source, fmt.Sprintf(result, arguments...)})
}

// add adds an item and returns its instance ID.
func (x *export) add(item ovf.Item) string {
	x.next++
	item.InstanceID, item.Required = strconv.Itoa(x.next), true
	x.system.Hardware.Items = append(x.system.Hardware.Items, item)
	return item.InstanceID
}

// at returns the object at a path, and an empty one if there is none.
func at(value any, path ...string) map[string]any {
	object, _ := value.(map[string]any)
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

func (x *export) hardware(options *ExportOptions) error {
	guest := at(options.VM, "spec", "template", "spec")
	domain := at(guest, "domain")
	x.system.OperatingSystem = systemOf(text(at(options.VM, "spec", "preference")["name"]))
	x.system.Hardware.Types = []string{"vmx-14"}
	if err := x.sizes(domain); err != nil {
		return err
	}
	firmware := at(domain, "firmware", "bootloader")
	x.system.Hardware.Firmware = ovf.FirmwareBIOS
	if efi, found := firmware["efi"].(map[string]any); found {
		x.system.Hardware.Firmware = ovf.FirmwareEFI
		// KubeVirt's default is true.
		secure, set := efi["secureBoot"].(bool)
		x.system.Hardware.SecureBoot = secure || !set
	}
	tpm, found := at(domain, "devices")["tpm"].(map[string]any)
	enabled, set := tpm["enabled"].(bool)
	x.system.Hardware.TPM = found && (enabled || !set)
	if err := x.disks(guest, options); err != nil {
		return err
	}
	x.networks(guest)
	return nil
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// count returns an integer of decoded JSON, and 1 if there is none.
func count(value any) uint64 {
	n, err := strconv.ParseUint(fmt.Sprint(value), 10, 32)
	if err != nil || n == 0 {
		return 1
	}
	return n
}

func (x *export) sizes(domain map[string]any) error {
	cpu := at(domain, "cpu")
	cores := count(cpu["cores"]) * count(cpu["threads"])
	if cores > 1<<32 {
		return errors.New("it has more than 2^32 processors")
	}
	x.add(ovf.Item{Type: ovf.ResourceProcessor, Units: "hertz * 10^6", Quantity: cores * count(cpu["sockets"]), CoresPerSocket: cores, Name: "Processors"})
	memory := text(at(domain, "memory")["guest"])
	if memory == "" {
		memory = text(at(domain, "resources", "requests")["memory"])
	}
	size, err := resource.ParseQuantity(memory)
	if err != nil || size.Value() < 1<<20 {
		return fmt.Errorf("the VirtualMachine has the memory %q; want at least 1 MiB. Apply its instance type before the export", memory)
	}
	x.add(ovf.Item{Type: ovf.ResourceMemory, Units: "byte * 2^20", Quantity: uint64((size.Value() + 1<<20 - 1) >> 20), Name: "Memory"})
	return nil
}

func (x *export) disks(guest map[string]any, options *ExportOptions) error {
	controllers := map[string]string{}
	used := map[string]int{}
	position := func(bus string) (controller, address string) {
		kind := ovf.Item{Type: ovf.ResourceOtherStorage, SubType: "vmware.sata.ahci", Name: "SATA controller", Address: "0"}
		if bus != BusSATA {
			// Guests of KubeVirt have drivers of virtio; those of this controller are part of Linux and Windows.
			bus, kind = BusSCSI, ovf.Item{Type: ovf.ResourceSCSIController, SubType: "lsilogicsas", Name: "SCSI controller", Address: "0"}
		}
		if _, found := controllers[bus]; !found {
			controllers[bus] = x.add(kind)
		}
		used[bus]++
		return controllers[bus], strconv.Itoa(used[bus] - 1)
	}
	volumes := map[string]bool{}
	for _, volume := range list(guest["volumes"]) {
		volumes[text(volume["name"])] = true
	}
	e := x.result.Envelope
	for i, disk := range options.Disks {
		if !volumes[disk.Volume] {
			return fmt.Errorf("the VirtualMachine has no volume %q, whose disk is to be exported", disk.Volume)
		}
		number := strconv.Itoa(i + 1)
		disk.File.ID = "file" + number
		e.Files = append(e.Files, disk.File)
		if !isCD(guest, disk.Volume) {
			e.Disks = append(e.Disks, ovf.Disk{ID: "disk" + number, FileRef: disk.File.ID, Capacity: disk.Capacity, Populated: disk.Populated, Format: disk.Format})
		}
	}
	exported := map[string]bool{}
	for _, device := range list(at(guest, "domain", "devices")["disks"]) {
		name := text(device["name"])
		i := slices.IndexFunc(options.Disks, func(d ExportDisk) bool { return d.Volume == name })
		if i < 0 {
			x.note(ActionDropped, "volume "+name, "its content is not in the package; only an import of the template has it")
			continue
		}
		exported[name] = true
		item := ovf.Item{Type: ovf.ResourceDisk, Name: name, HostResources: []string{"ovf:/disk/disk" + strconv.Itoa(i+1)}}
		bus := text(at(device, "disk")["bus"])
		if cdrom, found := device["cdrom"].(map[string]any); found {
			item.Type, item.SubType, item.HostResources = ovf.ResourceCD, "vmware.cdrom.iso", []string{"ovf:/file/" + e.Files[i].ID}
			bus = text(cdrom["bus"])
			if bus == "" {
				bus = BusSATA
			}
		}
		item.Parent, item.AddressOnParent = position(bus)
		x.add(item)
	}
	for i, disk := range options.Disks {
		if !exported[disk.Volume] {
			// KubeVirt adds a disk for a volume without one.
			item := ovf.Item{Type: ovf.ResourceDisk, Name: disk.Volume, HostResources: []string{"ovf:/disk/disk" + strconv.Itoa(i+1)}}
			item.Parent, item.AddressOnParent = position("")
			x.add(item)
		}
	}
	return nil
}

// isCD reports whether the device of a volume is a CD drive, whose file is no disk in a descriptor.
func isCD(guest map[string]any, volume string) bool {
	for _, device := range list(at(guest, "domain", "devices")["disks"]) {
		if text(device["name"]) == volume {
			return device["cdrom"] != nil
		}
	}
	return false
}

// models are VMware's adapters by KubeVirt's models.
var models = map[string]string{"e1000": "E1000", "e1000e": "E1000e", "pcnet": "PCNet32"}

func (x *export) networks(guest map[string]any) {
	connected := map[string]string{}
	for _, network := range list(guest["networks"]) {
		name := text(network["name"])
		connected[name] = name
		if attachment := text(at(network, "multus")["networkName"]); attachment != "" {
			connected[name] = attachment
		}
	}
	for i, device := range list(at(guest, "domain", "devices")["interfaces"]) {
		network := connected[text(device["name"])]
		if network == "" {
			network = "default"
		}
		e := x.result.Envelope
		if !slices.ContainsFunc(e.Networks, func(n ovf.Network) bool { return n.Name == network }) {
			e.Networks = append(e.Networks, ovf.Network{Name: network, Description: "The network " + network})
		}
		model, found := models[text(device["model"])]
		if !found {
			model = "VmxNet3"
		}
		x.add(ovf.Item{Type: ovf.ResourceEthernet, SubType: model, Name: "Network adapter " + strconv.Itoa(i+1), AddressOnParent: strconv.Itoa(7 + i), Connections: []string{network}})
	}
}

// parameters makes properties of parameters, for the information of other products.
func (x *export) parameters(parameters []v1beta1.Parameter) {
	var product ovf.Product
	for _, p := range parameters {
		if p.Name == plain.Dollar || p.Name == ParameterName {
			continue
		}
		property := ovf.Property{Key: p.Name, Type: "string", UserConfigurable: true, Password: p.Sensitive, Label: p.DisplayName, Description: p.Description, Value: p.Value, HasValue: p.Value != ""}
		var qualifiers []string
		switch p.Type {
		case v1beta1.ParameterTypeInt:
			property.Type = "sint64"
			if p.Minimum != nil {
				qualifiers = append(qualifiers, fmt.Sprintf("MinValue(%d)", *p.Minimum))
			}
			if p.Maximum != nil {
				qualifiers = append(qualifiers, fmt.Sprintf("MaxValue(%d)", *p.Maximum))
			}
		case v1beta1.ParameterTypeBool:
			property.Type = "boolean"
		}
		if len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(v string) bool { return strings.ContainsAny(v, "\"\n") }) {
			qualifiers = append(qualifiers, `ValueMap{"`+strings.Join(p.Enum, `","`)+`"}`)
		}
		if p.Sensitive {
			property.Value, property.HasValue = "", false
		}
		property.Qualifiers = strings.Join(qualifiers, " ")
		product.Properties = append(product.Properties, property)
	}
	if len(product.Properties) > 0 {
		product.Info = "Parameters of the template"
		x.system.Products = []ovf.Product{product}
	}
}

// embed adds the file with the template, and the section that refers to it.
func (x *export) embed(t *v1beta1.VirtualMachineTemplate, options *ExportOptions) {
	e := x.result.Envelope
	const id = "template"
	e.Files = append(e.Files, ovf.File{ID: id, Href: label(t.Name, "vm") + ".template.json", Size: int64(len(x.result.Template))})
	section := &ovf.Element{Space: Namespace, Local: "TemplateSection", Attributes: []ovf.Attribute{{Space: "http://schemas.dmtf.org/ovf/envelope/1", Local: "required", Value: "false"}}}
	section.Children = append(section.Children,
		&ovf.Element{Space: "http://schemas.dmtf.org/ovf/envelope/1", Local: "Info", Text: "The VirtualMachineTemplate from which the package was exported"},
		&ovf.Element{Space: Namespace, Local: "Template", Attributes: []ovf.Attribute{{Space: Namespace, Local: "fileRef", Value: id}}})
	claims := sources(t, options.VM)
	for i, disk := range options.Disks {
		claim := claims[disk.Volume]
		if claim.name == "" {
			x.note(ActionWarning, "volume "+disk.Volume, "the template makes it from something else than a PersistentVolumeClaim; an import of the template does not use the disk of the package")
			continue
		}
		attributes := []ovf.Attribute{
			{Space: Namespace, Local: "fileRef", Value: "file" + strconv.Itoa(i+1)}, {Space: Namespace, Local: "volume", Value: disk.Volume},
			{Space: Namespace, Local: "claim", Value: claim.name}, {Space: Namespace, Local: "namespace", Value: claim.namespace},
		}
		if isCD(at(options.VM, "spec", "template", "spec"), disk.Volume) {
			attributes = append(attributes, ovf.Attribute{Space: Namespace, Local: "cdrom", Value: "true"})
		}
		section.Children = append(section.Children, &ovf.Element{Space: Namespace, Local: "Disk", Attributes: attributes})
	}
	e.Extensions = append(e.Extensions, section)
}

type claim struct{ namespace, name string }

// Source is a volume that is a copy of a claim of the template.
type Source struct {
	// Volume is the name of the volume in the VirtualMachine, Claim that of the PersistentVolumeClaim, in Namespace; empty for that of the template.
	Volume, Claim, Namespace string
	// CDROM is true for a CD.
	CDROM bool
}

// Sources returns the volumes of a VirtualMachine that the template renders which are copies of PersistentVolumeClaims, in the order of the
// VirtualMachine. A claim that a parameter selects is not among them.
func Sources(t *v1beta1.VirtualMachineTemplate, vm map[string]any) []Source {
	guest, claims := at(vm, "spec", "template", "spec"), sources(t, vm)
	var all []Source
	for _, volume := range list(guest["volumes"]) {
		name := text(volume["name"])
		if from, found := claims[name]; found {
			all = append(all, Source{Volume: name, Claim: from.name, Namespace: from.namespace, CDROM: isCD(guest, name)})
		}
	}
	return all
}

// sources returns the claims from which the volumes of a VirtualMachine are made, as the template has them.
func sources(t *v1beta1.VirtualMachineTemplate, vm map[string]any) map[string]claim {
	found := map[string]claim{}
	rendered := clones(vm)
	declared := map[claim]bool{}
	if t.Spec.VirtualMachine != nil {
		if object, err := decode(t.Spec.VirtualMachine.Raw); err == nil {
			for _, pvc := range clones(object) {
				declared[claim{text(pvc["namespace"]), text(pvc["name"])}] = true
			}
		}
	}
	for _, volume := range list(at(vm, "spec", "template", "spec")["volumes"]) {
		pvc, cloned := rendered[text(at(volume, "dataVolume")["name"])]
		if !cloned {
			continue
		}
		// A claim that a parameter selects is not the template's own.
		if c := (claim{text(pvc["namespace"]), text(pvc["name"])}); declared[c] {
			found[text(volume["name"])] = c
		}
	}
	return found
}
