package ovf

// Version is the version of the format that a descriptor declares.
type Version string

// Versions of the format. All that begin with 1 have the same namespace.
const (
	Version09 Version = "0.9"
	Version1  Version = "1"
	Version2  Version = "2"
)

// Envelope is a descriptor.
type Envelope struct {
	// Version is read from the namespace. Encode ignores it and writes OVF 1.1.
	Version Version
	// Language is the language of the texts, such as en-US; empty if it is not declared.
	Language string
	// Files are the files of the package apart from the descriptor, the manifest, and the certificate.
	Files []File
	Disks []Disk
	// Networks are the logical networks that items refer to by name.
	Networks []Network
	// Configurations are the deployment options. At most one is the default.
	Configurations []Configuration
	// Systems are the virtual systems, those of nested collections included, in document order.
	Systems []System
	// Extensions are the sections of other namespaces at the level of the envelope that are not required.
	Extensions []*Element
	// Warnings report content that was ignored, in document order. Encode ignores them.
	Warnings []Warning
}

// Warning is content of a descriptor that was ignored.
type Warning struct {
	// Line is the line of the descriptor, from 1; 0 if the warning is about another file of the package.
	Line int
	// Path is the element, as in [DescriptorError], or the file.
	Path    string
	Message string
	// Dropped is set for a file that is not used.
	Dropped bool `json:",omitempty"`
}

// File is a reference to a file of the package.
type File struct {
	// ID is unique in the envelope.
	ID string
	// Href is the name of the file in the package.
	Href string
	// Size is the size of the file in bytes as it is stored in the package; -1 if it is not declared.
	Size int64
	// Compression is the compression of the whole file: "", "gzip" or "xz".
	Compression string
	// ChunkSize is the size in bytes of the parts into which the file is split, all but the last; 0 if it is not split. The parts are named
	// HREF.000000000, HREF.000000001, and so on.
	ChunkSize int64
}

// Disk is a virtual disk.
type Disk struct {
	// ID is unique in the envelope.
	ID string
	// FileRef is the ID of the file with the content; empty for an empty disk.
	FileRef string
	// Capacity is the size of the disk as the guest sees it, in bytes.
	Capacity int64
	// CapacityProperty is the key of the property that specifies the capacity, and CapacityUnits is its unit. Capacity then is that of the
	// property's default, and 0 if it has none.
	CapacityProperty string
	CapacityUnits    string
	// Populated is an estimate of the used bytes; -1 if it is not declared.
	Populated int64
	// Format is the URI of the format.
	Format string
	// Interface is oVirt's extension: the bus of the disk, such as VirtIO_SCSI. Encode does not write it.
	Interface string `json:",omitempty"`
	// ParentRef is the ID of the disk that this one is a difference to.
	ParentRef string
}

// URIs of disk formats. Those of VMDK are matched by prefix, because their fragment is the kind of the VMDK.
const (
	FormatVMDK = "http://www.vmware.com/interfaces/specifications/vmdk.html"
	// FormatVMDKStream is a VMDK of type streamOptimized.
	FormatVMDKStream = FormatVMDK + "#streamOptimized"
	FormatISO        = "http://www.ecma-international.org/publications/standards/Ecma-119.htm"
)

// Network is a logical network.
type Network struct{ Name, Description string }

// Configuration is a deployment option: a named variant of the hardware and of default values.
type Configuration struct {
	ID, Label, Description string
	Default                bool
}

// System is a virtual system: one VM.
type System struct {
	// ID is unique in the envelope.
	ID string
	// Name is empty if the descriptor declares none; Title returns the ID then.
	Name string
	// Collections are the IDs of the collections that contain the system, the outermost first.
	Collections []string
	Info        string
	// Annotation is the text of the annotation section.
	Annotation string
	// Products are the system's own product sections after those of its collections.
	Products []Product
	// Licenses are the texts of the license agreements, those of collections first.
	Licenses        []string
	OperatingSystem OperatingSystem
	Hardware        Hardware
	// Extensions are the sections of other namespaces that are not required.
	Extensions []*Element
}

// Title returns the name of the system, or its ID.
func (s *System) Title() string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID
}

// Product is a product section: information about software and its properties.
type Product struct {
	// Class and Instance qualify the keys of the properties.
	Class, Instance                    string
	Info, Product, Vendor, Version     string
	FullVersion, ProductURL, VendorURL string
	AppURL                             string
	Properties                         []Property
}

// Property is a value that the guest reads from its environment.
type Property struct {
	// Key is the key without class and instance. FullKey adds them.
	Key string
	// Type is a type of the format: string, boolean, uint8 to uint64, sint8 to sint64, real32, real64. Of VMware's extensions, int is sint32,
	// and password is a string with Password set.
	Type string
	// Qualifiers are CIM qualifiers, such as MinLen(1) MaxLen(20) ValueMap{"a","b"}.
	Qualifiers string
	// UserConfigurable is true if the user who deploys the package sets the value.
	UserConfigurable bool
	// Password is true if the value is a secret.
	Password                     bool
	Label, Description, Category string
	// Value is the default. HasValue distinguishes an empty default from none.
	Value    string
	HasValue bool
	// Values are the defaults of configurations, by their ID.
	Values map[string]string
}

// FullKey returns [CLASS.]KEY[.INSTANCE], by which the guest finds the property.
func (p *Product) FullKey(property *Property) string {
	key := property.Key
	if p.Class != "" {
		key = p.Class + "." + key
	}
	if p.Instance != "" {
		key += "." + p.Instance
	}
	return key
}

// Default returns the default in a configuration; configuration may be empty.
func (p *Property) Default(configuration string) (value string, found bool) {
	if value, found := p.Values[configuration]; found && configuration != "" {
		return value, true
	}
	return p.Value, p.HasValue
}

// OperatingSystem is the operating system of the guest.
type OperatingSystem struct {
	// ID is the number of CIM_OperatingSystem.OSType; 0 is unknown.
	ID          int
	Version     string
	Description string
	// VMware is VMware's identifier (vmw:osType), such as ubuntu64Guest; VirtualBox is VirtualBox's (vbox:OSType), such as Ubuntu_64.
	VMware, VirtualBox string
}

// Firmware is the firmware of a virtual system.
type Firmware string

// Kinds of firmware. The empty value is not declared, which means BIOS.
const (
	FirmwareBIOS Firmware = "bios"
	FirmwareEFI  Firmware = "efi"
)

// Hardware is a virtual hardware section.
type Hardware struct {
	// Types are the virtual hardware families, such as vmx-19, virtualbox-2.2, xen-3.
	Types []string
	// Transports are the ways in which the guest receives its properties: iso, com.vmware.guestInfo.
	Transports []string
	// Items are the devices of all configurations; see Select.
	Items      []Item
	Firmware   Firmware
	SecureBoot bool
	TPM        bool
	// BootOrder are instance IDs of items, from VMware's boot order section.
	BootOrder []string
	// Config are settings of the platform that exported the package, in document order, apart from those of the fields above.
	Config []Setting
}

// Setting is a setting of a virtualization platform.
type Setting struct{ Key, Value string }

// Select returns the items that are effective in a configuration, in document order of their first declaration: an item that names the
// configuration replaces the one with the same instance ID that names none. Of others with the same instance ID, which the format does not allow, all
// are effective, so that no device is lost. Items that are bounds (ovf:bound min, max) are ranges and not devices; they are left out. configuration
// may be empty.
func (h *Hardware) Select(configuration string) []Item {
	var selected []Item
	places := map[string]int{}
	for _, item := range h.Items {
		specific := false
		for _, name := range item.Configurations {
			specific = specific || name == configuration
		}
		if item.bounds() || len(item.Configurations) > 0 && !specific {
			continue
		}
		place, found := places[item.InstanceID]
		general := found && len(selected[place].Configurations) == 0
		switch {
		case !found || item.InstanceID == "" || specific != general:
			places[item.InstanceID] = len(selected)
			selected = append(selected, item)
		case specific:
			selected[place] = item
		}
	}
	return selected
}

// DefaultConfiguration returns the ID of the configuration that applies if the user chooses none: the default, or else the first; empty if the
// envelope has no configurations.
func (e *Envelope) DefaultConfiguration() string {
	for _, c := range e.Configurations {
		if c.Default {
			return c.ID
		}
	}
	if len(e.Configurations) > 0 {
		return e.Configurations[0].ID
	}
	return ""
}

// File returns the file with this ID, and nil if there is none.
func (e *Envelope) File(id string) *File {
	for i := range e.Files {
		if e.Files[i].ID == id {
			return &e.Files[i]
		}
	}
	return nil
}

// Disk returns the disk with this ID, and nil if there is none.
func (e *Envelope) Disk(id string) *Disk {
	for i := range e.Disks {
		if e.Disks[i].ID == id {
			return &e.Disks[i]
		}
	}
	return nil
}
