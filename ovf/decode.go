package ovf

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Namespaces of the format and of platforms whose extensions are read.
const (
	namespace1          = "http://schemas.dmtf.org/ovf/envelope/1"
	namespace2          = "http://schemas.dmtf.org/ovf/envelope/2"
	namespaceVMware     = "http://www.vmware.com/schema/ovf"
	namespaceVirtualBox = "http://www.virtualbox.org/ovf/machine"
	namespaceRASD       = "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
	namespaceVSSD       = "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData"
)

// versions are the versions by namespace. Drafts of 1.0 had namespaces of their own. Elements without a namespace are OVF's, because some
// exporters qualify only the root.
var versions = map[string]Version{
	namespace1: Version1, namespace1 + "/": Version1, "http://schemas.dmtf.org/ovf/1/envelope": Version1, "http://schemas.dmtf.org/ovf/envelope": Version1,
	namespace2: Version2,
	"http://www.vmware.com/schema/ovf/1/envelope": Version09, "http://www.vmware.com/schema/ovf/0.9/envelope": Version09,
}

// isFormat reports whether a namespace is one of the format.
func isFormat(space string) bool {
	_, found := versions[space]
	return found || space == ""
}

// isItemField reports whether an element of this namespace can be a field of an item.
func isItemField(space string) bool {
	return isFormat(space) || strings.HasPrefix(space, "http://schemas.dmtf.org/wbem/")
}

var (
	hostResource = regexp.MustCompile(`^(?:ovf:)?/{0,2}(disk|file)/(.+)$`)
	// identifier limits the IDs of files, disks and systems. It allows what the exporters write, and no control characters.
	identifier = regexp.MustCompile(`^[^\x00-\x1f\x7f]{1,256}$`)
)

// Decode reads a descriptor to its end. It fails with a [DescriptorError] if the descriptor is malformed, contradicts itself or exceeds a limit,
// and with an [UnsupportedError] if it requires something that is not supported.
func Decode(r io.Reader) (*Envelope, error) {
	root, err := parse(r)
	if err != nil {
		return nil, err
	}
	version, found := versions[root.Space]
	if root.Space == "" {
		// Some exporters qualify attributes only.
		version, found = Version1, true
	}
	if root.Local != "Envelope" || !found {
		return nil, root.fail("the root element is %s in namespace %s; want Envelope in namespace %s or %s", root.Local, shown(root.Space), namespace1, namespace2)
	}
	// The two generations of 0.9 are recognized by their sections, because drafts of 1.0 have them in the namespace of 1.0.
	if version == Version09 || root.Attribute("version") == "0.9" || root.Child("Section") != nil {
		version = Version09
		upgrade(root)
	}
	d := &decoder{envelope: &Envelope{Version: version, Language: root.Attribute("lang")}, strings: map[string]string{}, boot: map[string]bool{}}
	if err := d.decode(root); err != nil {
		return nil, err
	}
	if len(d.unsupported) > 0 {
		return nil, &UnsupportedError{Sections: d.unsupported}
	}
	return d.envelope, nil
}

// decoder is the state of one call of Decode.
type decoder struct {
	envelope *Envelope
	// strings are the texts of messages, by their ID.
	strings     map[string]string
	unsupported []string
	systems     []*Element
	// boot are the IDs of the disks that oVirt marks as those that boot.
	boot map[string]bool
}

func (d *decoder) warn(e *Element, message string, arguments ...any) {
	if len(d.envelope.Warnings) == MaxWarnings {
		return
	}
	d.envelope.Warnings = append(d.envelope.Warnings, Warning{Line: e.line, Path: e.path(), Message: fmt.Sprintf(message, arguments...)})
}

// unknown handles a section that is not understood. It returns true if the section may be ignored.
func (d *decoder) unknown(e *Element) bool {
	name := e.path()
	if !isFormat(e.Space) {
		name += " (" + e.Space + ")"
	}
	if required(e) {
		d.unsupported = append(d.unsupported, name)
		return false
	}
	return true
}

// required returns the attribute ovf:required, which is true by default.
func required(e *Element) bool {
	value := e.Attribute("required")
	return value != "false" && value != "0"
}

func (d *decoder) decode(root *Element) error {
	for _, e := range root.Children {
		if isStrings(e) {
			d.messages(e)
		}
	}
	outer := collection{}
	decoders := map[string]func(*Element) error{
		"References": d.references, "DiskSection": d.disks, "NetworkSection": d.networks, "DeploymentOptionSection": d.configurations,
	}
	for _, e := range root.Children {
		decode, found := decoders[e.Local]
		switch {
		case d.isIgnored(e), isStrings(e):
		case !isFormat(e.Space):
			if d.unknown(e) {
				d.envelope.Extensions = append(d.envelope.Extensions, e)
			}
		case found:
			if err := decode(e); err != nil {
				return err
			}
		case e.Local == "VirtualSystem" || e.Local == "VirtualSystemCollection":
		default:
			// Exporters of 0.9 have license agreements and products here; they are those of all systems.
			known, err := d.common(e, &outer.products, &outer.licenses, &outer.annotation)
			if err != nil {
				return err
			}
			if !known && d.unknown(e) {
				d.warn(e, "the section is not supported and is ignored; it is not required")
			}
		}
	}
	for _, e := range root.Children {
		if err := d.content(e, outer); err != nil {
			return err
		}
	}
	if len(d.envelope.Systems) == 0 {
		return root.fail("contains no VirtualSystem")
	}
	return d.check(root)
}

// isStrings reports whether an element has texts in another language. Examples of the specification have it in a namespace of its own.
func isStrings(e *Element) bool {
	return e.Local == "Strings" && (isFormat(e.Space) || strings.HasSuffix(e.Space, ".dmtf.org/ovf/strings/1"))
}

// messages reads texts in another language. Those of the envelope's language, or else the first, replace empty texts that refer to them.
func (d *decoder) messages(e *Element) {
	if e.Attribute("fileRef") != "" {
		d.warn(e, "texts in a file of their own are not read")
		return
	}
	lang := e.Attribute("lang")
	for _, m := range e.Children {
		id := m.Attribute("msgid")
		if _, found := d.strings[id]; !found || lang != "" && lang == d.envelope.Language {
			d.strings[id] = m.Text
		}
	}
}

// text returns the text of a child, which may be a reference to a message.
func (d *decoder) text(e *Element, local string) string {
	c := e.Child(local)
	if c == nil {
		return ""
	}
	if id := c.Attribute("msgid"); c.Text == "" && id != "" {
		return d.strings[id]
	}
	return c.Text
}

// integer returns an attribute that is an integer from 0 to 2^63-1, and otherwise if it is missing.
func integer(e *Element, local string, otherwise int64) (int64, error) {
	text, found := e.attribute(local)
	if !found || text == "" {
		return otherwise, nil
	}
	value, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || value < 0 {
		return 0, e.fail("%s is %s; want an integer from 0 to 2^63-1", local, shown(text))
	}
	return value, nil
}

// id returns an attribute that identifies the element.
func id(e *Element, local string) (string, error) {
	value := e.Attribute(local)
	if !identifier.MatchString(value) {
		return "", e.fail("%s is %s; want 1 to 256 characters without control characters", local, shown(value))
	}
	return value, nil
}

func (d *decoder) references(section *Element) error {
	for _, e := range section.Children {
		if e.Local != "File" || !isFormat(e.Space) {
			d.warn(e, "is ignored; References contain files")
			continue
		}
		if len(d.envelope.Files) == MaxFiles {
			return section.fail("contains more than %d files", MaxFiles)
		}
		var f File
		var err error
		if f.ID, err = id(e, "id"); err != nil {
			return err
		}
		if f.Size, err = integer(e, "size", -1); err != nil {
			return err
		}
		if f.ChunkSize, err = integer(e, "chunkSize", 0); err != nil {
			return err
		}
		f.Href = e.Attribute("href")
		if f.Href == "" {
			return e.fail("the file has no href")
		}
		switch c := e.Attribute("compression"); strings.ToLower(c) {
		case "", "identity":
		case "gzip", "xz":
			f.Compression = strings.ToLower(c)
		default:
			return e.fail("the compression %s is not supported; want gzip, xz, or none", shown(c))
		}
		switch {
		case f.ChunkSize > 0 && f.Size < 0:
			return e.fail("a file with chunkSize needs a size")
		case f.ChunkSize > 0 && (f.Size-1)/f.ChunkSize >= MaxChunks:
			return e.fail("has more than %d chunks", MaxChunks)
		case d.envelope.File(f.ID) != nil:
			return e.fail("the ID is not unique")
		case slices.ContainsFunc(d.envelope.Files, func(other File) bool { return other.Href == f.Href }):
			return e.fail("the file %s is referred to twice", shown(f.Href))
		}
		d.envelope.Files = append(d.envelope.Files, f)
	}
	return nil
}

func (d *decoder) disks(section *Element) error {
	for _, e := range section.Children {
		if e.Local == "Info" {
			continue
		}
		if e.Local != "Disk" || !isFormat(e.Space) {
			d.warn(e, "is ignored; a DiskSection contains disks")
			continue
		}
		if len(d.envelope.Disks) == MaxDisks {
			return section.fail("contains more than %d disks", MaxDisks)
		}
		disk, err := d.disk(e)
		if err != nil {
			return err
		}
		if d.envelope.Disk(disk.ID) != nil {
			return e.fail("the ID is not unique")
		}
		d.envelope.Disks = append(d.envelope.Disks, disk)
	}
	return nil
}

var propertyReference = regexp.MustCompile(`^\$\{([^{}]+)\}$`)

func (d *decoder) disk(e *Element) (disk Disk, err error) {
	disk = Disk{FileRef: e.Attribute("fileRef"), Format: e.Attribute("format"), ParentRef: e.Attribute("parentRef"), Interface: e.Attribute("disk-interface")}
	if disk.ID, err = id(e, "diskId"); err != nil {
		return disk, err
	}
	d.boot[disk.ID] = isTrue(e.Attribute("boot"))
	if disk.Populated, err = integer(e, "populatedSize", -1); err != nil {
		return disk, err
	}
	unit := e.Attribute("capacityAllocationUnits")
	if _, err := multiplier(unit); err != nil {
		return disk, e.fail("capacityAllocationUnits: %v", err)
	}
	if reference := propertyReference.FindStringSubmatch(e.Attribute("capacity")); reference != nil {
		disk.CapacityProperty, disk.CapacityUnits = reference[1], unit
		return disk, nil
	}
	capacity, err := integer(e, "capacity", -1)
	if err != nil {
		return disk, err
	}
	if capacity < 0 {
		// Export domains of oVirt have no capacity, but the size in GiB.
		if capacity, err = integer(e, "size", -1); err != nil {
			return disk, err
		}
		unit = "GiB"
	}
	if capacity < 0 {
		return disk, e.fail("the disk has no capacity")
	}
	if disk.Capacity, err = Bytes(uint64(capacity), unit); err != nil {
		return disk, e.fail("capacity: %v", err)
	}
	return disk, nil
}

func (d *decoder) networks(section *Element) error {
	for _, e := range section.Children {
		if e.Local == "Network" && isFormat(e.Space) {
			d.envelope.Networks = append(d.envelope.Networks, Network{Name: e.Attribute("name"), Description: d.text(e, "Description")})
		}
	}
	return nil
}

func (d *decoder) configurations(section *Element) error {
	for _, e := range section.Children {
		if e.Local != "Configuration" || !isFormat(e.Space) {
			continue
		}
		name, err := id(e, "id")
		if err != nil {
			return err
		}
		if slices.ContainsFunc(d.envelope.Configurations, func(other Configuration) bool { return other.ID == name }) {
			return e.fail("the ID is not unique")
		}
		value := e.Attribute("default")
		d.envelope.Configurations = append(d.envelope.Configurations, Configuration{
			ID: name, Label: d.text(e, "Label"), Description: d.text(e, "Description"), Default: value == "true" || value == "1",
		})
	}
	return nil
}
