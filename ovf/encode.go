package ovf

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// subTypeTPM is the item by which VMware declares a TPM.
const subTypeTPM = "vmware.vtpm"

// Encode writes an envelope as OVF 1.1, in UTF-8. The same envelope always becomes the same bytes. Several systems become members of one
// collection, with the ID of the first system's outermost collection. Capacities are written in bytes. It fails if the
// result would not be accepted by [Decode].
func Encode(w io.Writer, e *Envelope) error {
	n := &encoder{}
	n.envelope(e)
	if _, err := Decode(bytes.NewReader(n.Bytes())); err != nil {
		return fmt.Errorf("encoding the OVF descriptor: the envelope is not valid: %w", err)
	}
	_, err := w.Write(n.Bytes())
	return err
}

// encoder writes elements, indented by two spaces.
type encoder struct {
	bytes.Buffer
	open []string
	// blank writes attributes with an empty value, too.
	blank bool
}

func (n *encoder) start(name string, attributes ...string) {
	n.tag(name, attributes, ">\n")
	n.open = append(n.open, name)
}

func (n *encoder) end() {
	name := n.open[len(n.open)-1]
	n.open = n.open[:len(n.open)-1]
	fmt.Fprintf(n, "%s</%s>\n", strings.Repeat("  ", len(n.open)), name)
}

// empty writes an element without content.
func (n *encoder) empty(name string, attributes ...string) { n.tag(name, attributes, "/>\n") }

// tag writes the start of an element. attributes are names and values in turn; those with an empty value are left out, unless blank is set.
func (n *encoder) tag(name string, attributes []string, end string) {
	n.WriteString(strings.Repeat("  ", len(n.open)) + "<" + name)
	for i := 0; i < len(attributes); i += 2 {
		if attributes[i+1] == "" && !n.blank {
			continue
		}
		n.WriteString(" " + attributes[i] + `="`)
		n.escape(attributes[i+1])
		n.WriteByte('"')
	}
	n.WriteString(end)
}

func (n *encoder) escape(text string) {
	// Writing to a buffer does not fail.
	_ = xml.EscapeText(n, []byte(text))
}

// leaf writes an element with text, if there is text.
func (n *encoder) leaf(name, text string, attributes ...string) {
	if text == "" {
		return
	}
	n.tag(name, attributes, ">")
	n.escape(text)
	n.WriteString("</" + name + ">\n")
}

// info writes the description that each section must have.
func (n *encoder) info(text, otherwise string) {
	if text == "" {
		text = otherwise
	}
	n.leaf("Info", text)
}

func (n *encoder) envelope(e *Envelope) {
	n.WriteString(xml.Header)
	n.start("Envelope", "xmlns", namespace1, "xmlns:ovf", namespace1, "xmlns:rasd", namespaceRASD, "xmlns:vssd", namespaceVSSD, "xmlns:vmw", namespaceVMware, "xml:lang", e.Language)
	n.start("References")
	for _, f := range e.Files {
		n.empty("File", "ovf:id", f.ID, "ovf:href", f.Href, "ovf:size", optional(f.Size), "ovf:compression", f.Compression, "ovf:chunkSize", positive(f.ChunkSize))
	}
	n.end()
	if len(e.Disks) > 0 {
		n.start("DiskSection")
		n.info("", "Virtual disks of the package")
		for _, d := range e.Disks {
			n.disk(d)
		}
		n.end()
	}
	if len(e.Networks) > 0 {
		n.start("NetworkSection")
		n.info("", "Logical networks of the package")
		for _, network := range e.Networks {
			n.start("Network", "ovf:name", network.Name)
			n.leaf("Description", network.Description)
			n.end()
		}
		n.end()
	}
	if len(e.Configurations) > 0 {
		n.start("DeploymentOptionSection")
		n.info("", "Deployment options")
		for _, c := range e.Configurations {
			n.start("Configuration", "ovf:id", c.ID, "ovf:default", boolean(c.Default))
			n.leaf("Label", c.Label)
			n.leaf("Description", c.Description)
			n.end()
		}
		n.end()
	}
	n.extensions(e.Extensions)
	if len(e.Systems) > 1 {
		outer := "collection"
		if ids := e.Systems[0].Collections; len(ids) > 0 {
			outer = ids[0]
		}
		n.start("VirtualSystemCollection", "ovf:id", outer)
		n.info("", "A collection of virtual systems")
	}
	for i := range e.Systems {
		n.system(&e.Systems[i])
	}
	for len(n.open) > 0 {
		n.end()
	}
}

func (n *encoder) disk(d Disk) {
	capacity, unit := strconv.FormatInt(d.Capacity, 10), "byte"
	if d.CapacityProperty != "" {
		capacity, unit = "${"+d.CapacityProperty+"}", d.CapacityUnits
	}
	n.empty("Disk", "ovf:diskId", d.ID, "ovf:fileRef", d.FileRef, "ovf:capacity", capacity, "ovf:capacityAllocationUnits", unit,
		"ovf:populatedSize", optional(d.Populated), "ovf:format", d.Format, "ovf:parentRef", d.ParentRef)
}

func (n *encoder) system(s *System) {
	n.start("VirtualSystem", "ovf:id", s.ID)
	n.info(s.Info, "A virtual system")
	n.leaf("Name", s.Name)
	if s.Annotation != "" {
		n.start("AnnotationSection")
		n.info("", "A description of the virtual system")
		n.leaf("Annotation", s.Annotation)
		n.end()
	}
	for i := range s.Products {
		n.product(&s.Products[i])
	}
	for _, license := range s.Licenses {
		n.start("EulaSection")
		n.info("", "A license agreement")
		n.leaf("License", license)
		n.end()
	}
	if system := s.OperatingSystem; system != (OperatingSystem{}) {
		n.start("OperatingSystemSection", "ovf:id", strconv.Itoa(system.ID), "ovf:version", system.Version, "vmw:osType", system.VMware)
		n.info("", "The operating system of the guest")
		n.leaf("Description", system.Description)
		n.leaf("vbox:OSType", system.VirtualBox, "ovf:required", "false", "xmlns:vbox", namespaceVirtualBox)
		n.end()
	}
	n.hardware(s)
	if len(s.Hardware.BootOrder) > 0 {
		n.start("vmw:BootOrderSection", "ovf:required", "false", "vmw:instanceId", strings.Join(s.Hardware.BootOrder, " "), "vmw:type", "disk")
		n.info("", "Boot order")
		n.end()
	}
	n.extensions(s.Extensions)
	n.end()
}

func (n *encoder) product(p *Product) {
	n.start("ProductSection", "ovf:class", p.Class, "ovf:instance", p.Instance)
	n.info(p.Info, "Information about the software")
	for _, each := range [][2]string{
		{"Product", p.Product}, {"Vendor", p.Vendor}, {"Version", p.Version}, {"FullVersion", p.FullVersion}, {"ProductUrl", p.ProductURL}, {"VendorUrl", p.VendorURL}, {"AppUrl", p.AppURL},
	} {
		n.leaf(each[0], each[1])
	}
	category := ""
	for _, property := range p.Properties {
		if property.Category != category {
			n.leaf("Category", property.Category)
			category = property.Category
		}
		attributes := []string{"ovf:key", property.Key, "ovf:type", property.Type, "ovf:qualifiers", property.Qualifiers, "ovf:userConfigurable", boolean(property.UserConfigurable), "ovf:password", boolean(property.Password)}
		if property.Value != "" {
			attributes = append(attributes, "ovf:value", property.Value)
		}
		n.start("Property", attributes...)
		n.leaf("Label", property.Label)
		n.leaf("Description", property.Description)
		if property.HasValue && property.Value == "" {
			n.WriteString(strings.Repeat("  ", len(n.open)) + "<Value ovf:value=\"\"/>\n")
		}
		for _, configuration := range slices.Sorted(maps.Keys(property.Values)) {
			n.start("Value", "ovf:value", property.Values[configuration], "ovf:configuration", configuration)
			n.end()
		}
		n.end()
	}
	n.end()
}

func (n *encoder) hardware(s *System) {
	h := &s.Hardware
	n.start("VirtualHardwareSection", "ovf:transport", strings.Join(h.Transports, " "))
	n.info("", "Virtual hardware")
	if len(h.Types) > 0 {
		n.start("System")
		n.leaf("vssd:ElementName", "Virtual Hardware Family")
		n.leaf("vssd:InstanceID", "0")
		n.leaf("vssd:VirtualSystemIdentifier", s.Title())
		n.leaf("vssd:VirtualSystemType", strings.Join(h.Types, " "))
		n.end()
	}
	for i := range h.Items {
		n.item(&h.Items[i])
	}
	if h.TPM {
		n.item(&Item{InstanceID: h.unused(), Name: "Virtual TPM", SubType: subTypeTPM, Type: ResourceOther})
	}
	settings := []Setting{{"firmware", string(h.Firmware)}}
	if h.SecureBoot {
		settings = append(settings, Setting{"bootOptions.efiSecureBootEnabled", "true"})
	}
	for _, setting := range append(settings, h.Config...) {
		n.setting(setting)
	}
	n.end()
}

// unused returns an instance ID that no item has.
func (h *Hardware) unused() string {
	for n := len(h.Items) + 1; ; n++ {
		id := strconv.Itoa(n)
		if !slices.ContainsFunc(h.Items, func(i Item) bool { return i.InstanceID == id }) {
			return id
		}
	}
}

func (n *encoder) setting(s Setting) {
	if s.Value != "" {
		n.empty("vmw:Config", "ovf:required", "false", "vmw:key", s.Key, "vmw:value", s.Value)
	}
}

// item writes an item. Its fields are in the order of the alphabet, as the schema demands.
func (n *encoder) item(i *Item) {
	required := ""
	if !i.Required {
		required = "false"
	}
	n.start("Item", "ovf:required", required, "ovf:configuration", strings.Join(i.Configurations, " "), "ovf:bound", i.Bound)
	n.leaf("rasd:Address", i.Address)
	n.leaf("rasd:AddressOnParent", i.AddressOnParent)
	n.leaf("rasd:AllocationUnits", i.Units)
	if i.Type == ResourceEthernet {
		n.leaf("rasd:AutomaticAllocation", "true")
	}
	for _, connection := range i.Connections {
		n.leaf("rasd:Connection", connection)
	}
	n.leaf("rasd:Description", i.Description)
	name := i.Name
	if name == "" {
		name = i.Type.String()
	}
	n.leaf("rasd:ElementName", name)
	for _, resource := range i.HostResources {
		n.leaf("rasd:HostResource", resource)
	}
	n.leaf("rasd:InstanceID", i.InstanceID)
	n.leaf("rasd:Limit", i.Limit)
	n.leaf("rasd:Parent", i.Parent)
	n.leaf("rasd:Reservation", i.Reservation)
	n.leaf("rasd:ResourceSubType", i.SubType)
	n.leaf("rasd:ResourceType", strconv.Itoa(int(i.Type)))
	if i.Quantity > 0 {
		n.leaf("rasd:VirtualQuantity", strconv.FormatUint(i.Quantity, 10))
	}
	n.leaf("rasd:Weight", i.Weight)
	if i.CoresPerSocket > 0 {
		n.leaf("vmw:CoresPerSocket", strconv.FormatUint(i.CoresPerSocket, 10), "ovf:required", "false")
	}
	for _, setting := range i.Config {
		n.setting(setting)
	}
	n.end()
}

// extensions writes sections of other namespaces, in which an empty attribute can have a meaning.
func (n *encoder) extensions(extensions []*Element) {
	n.blank = true
	defer func() { n.blank = false }()
	for _, e := range extensions {
		n.extension(e, "")
	}
}

// extension writes an element of another namespace. outer is the namespace of the prefix x around it.
func (n *encoder) extension(e *Element, outer string) {
	var attributes []string
	prefix := "x:"
	switch {
	case isFormat(e.Space):
		prefix = ""
	case e.Space != outer:
		attributes = append(attributes, "xmlns:x", e.Space)
	}
	for _, a := range e.Attributes {
		switch {
		case a.Space == e.Space && a.Space != "":
			attributes = append(attributes, prefix+a.Local, a.Value)
		case a.Space == "":
			attributes = append(attributes, a.Local, a.Value)
		case isFormat(a.Space):
			attributes = append(attributes, "ovf:"+a.Local, a.Value)
		}
	}
	space := e.Space
	if isFormat(space) {
		space = outer
	}
	if len(e.Children) == 0 {
		if e.Text == "" {
			n.empty(prefix+e.Local, attributes...)
		} else {
			n.leaf(prefix+e.Local, e.Text, attributes...)
		}
		return
	}
	n.start(prefix+e.Local, attributes...)
	for _, c := range e.Children {
		n.extension(c, space)
	}
	n.end()
}

// optional returns a size, or nothing if it is not declared.
func optional(size int64) string {
	if size < 0 {
		return ""
	}
	return strconv.FormatInt(size, 10)
}

func positive(size int64) string {
	if size == 0 {
		return ""
	}
	return strconv.FormatInt(size, 10)
}

func boolean(value bool) string {
	if value {
		return "true"
	}
	return ""
}
