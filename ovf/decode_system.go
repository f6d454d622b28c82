package ovf

import (
	"slices"
	"strconv"
	"strings"
)

// collection is what systems inherit from the collections that contain them.
type collection struct {
	ids        []string
	products   []Product
	licenses   []string
	annotation []string
}

// ignored are sections that are understood in so far as a VM starts without them.
var ignored = map[string]string{
	"StartupSection":            "the order and delays in which systems start are not applied",
	"ResourceAllocationSection": "the resources of the collection are not limited or reserved",
	"InstallSection":            "the system is not started once for its installation before it is used",
	"BootDeviceSection":         "the boot devices are not applied; the first disk boots",
	"CpuCompatibilitySection":   "the features of the processor are those of the cluster",
	"IpAssignmentSection":       "IP addresses are not assigned by the platform",
	// oVirt has the next five, and marks none of them as not required.
	"SnapshotsSection":      "snapshots are not restored",
	"UserDomainsSection":    "users and roles of the source are not applied",
	"AffinityGroupsSection": "affinity is not applied",
	"AffinityLabelsSection": "affinity is not applied",
	"VmExternalDataSection": "data of the source's host, such as the state of a TPM, are not restored",
	"StorageSection":        "the storage profile is not applied",
	"StorageGroupSection":   "the storage profile is not applied",
}

// isIgnored reports whether a section is one of those, and warns.
func (d *decoder) isIgnored(e *Element) bool {
	message, found := ignored[e.Local]
	if !found || !isFormat(e.Space) && e.Space != namespaceVMware {
		return false
	}
	d.warn(e, "%s", message)
	return true
}

// content reads a system or a collection of systems.
func (d *decoder) content(e *Element, outer collection) error {
	switch {
	case !isFormat(e.Space):
		return nil
	case e.Local == "VirtualSystem":
		return d.system(e, outer)
	case e.Local != "VirtualSystemCollection":
		return nil
	}
	name, err := id(e, "id")
	if err != nil {
		return err
	}
	inner := collection{append(slices.Clone(outer.ids), name), slices.Clone(outer.products), slices.Clone(outer.licenses), slices.Clone(outer.annotation)}
	for _, c := range e.Children {
		if c.Local == "VirtualSystem" || c.Local == "VirtualSystemCollection" {
			continue
		}
		known, err := d.common(c, &inner.products, &inner.licenses, &inner.annotation)
		if err != nil {
			return err
		}
		if !known {
			d.extension(c, nil)
		}
	}
	for _, c := range e.Children {
		if err := d.content(c, inner); err != nil {
			return err
		}
	}
	return nil
}

// common reads a section that systems and collections have. It returns false if the section is another one.
func (d *decoder) common(e *Element, products *[]Product, licenses, annotation *[]string) (bool, error) {
	switch {
	case d.isIgnored(e):
		return true, nil
	case !isFormat(e.Space):
		return false, nil
	}
	switch e.Local {
	case "Info", "Name":
	case "ProductSection":
		product, err := d.product(e)
		if err != nil {
			return true, err
		}
		*products = append(*products, product)
	case "EulaSection":
		if license := d.text(e, "License"); license != "" {
			*licenses = append(*licenses, license)
		}
	case "AnnotationSection":
		*annotation = append(*annotation, d.text(e, "Annotation"))
	default:
		return false, nil
	}
	return true, nil
}

// isSection reports whether an element can be a section, each of which has an Info. oVirt writes fields of its own in the namespace of the format.
func isSection(e *Element) bool {
	return !isFormat(e.Space) || strings.HasSuffix(e.Local, "Section") || e.Child("Info") != nil
}

// extension handles content that is not understood.
func (d *decoder) extension(e *Element, extensions *[]*Element) {
	if !isSection(e) {
		d.warn(e, "is no section, because it has no Info, and is ignored")
		return
	}
	if !d.unknown(e) {
		return
	}
	if extensions != nil && !isFormat(e.Space) {
		*extensions = append(*extensions, e)
		return
	}
	d.warn(e, "is not supported and is ignored; it is not required")
}

func (d *decoder) system(e *Element, outer collection) error {
	if len(d.envelope.Systems) == MaxSystems {
		return e.fail("the envelope contains more than %d virtual systems", MaxSystems)
	}
	name, err := id(e, "id")
	if err != nil {
		return err
	}
	system := System{ID: name, Name: d.text(e, "Name"), Info: d.text(e, "Info"), Collections: outer.ids, Products: slices.Clone(outer.products), Licenses: slices.Clone(outer.licenses)}
	annotation := slices.Clone(outer.annotation)
	hardware, firmware := 0, ""
	for _, c := range e.Children {
		known, err := d.common(c, &system.Products, &system.Licenses, &annotation)
		switch {
		case err != nil:
			return err
		case known:
		case isFormat(c.Space) && c.Local == "OperatingSystemSection":
			d.operatingSystem(c, &system.OperatingSystem)
		case isFormat(c.Space) && c.Local == "VirtualHardwareSection":
			if hardware++; hardware > 1 {
				d.warn(c, "is an alternative to the first VirtualHardwareSection and is ignored")
				continue
			}
			err = d.hardware(c, &system.Hardware)
		case isFormat(c.Space) && c.Local == "BiosType":
			firmware = c.Text
		case c.Space == namespaceVMware && c.Local == "BootOrderSection":
			if c.Attribute("type") == "disk" || c.Attribute("type") == "" {
				system.Hardware.BootOrder = append(system.Hardware.BootOrder, strings.Fields(c.Attribute("instanceId"))...)
			}
		default:
			d.extension(c, &system.Extensions)
		}
		if err != nil {
			return err
		}
	}
	system.Hardware.oVirt(firmware)
	length := 0
	for _, text := range annotation {
		if length += len(text) + 1; length > MaxAnnotationBytes {
			return e.fail("its annotations are longer than %d KiB", MaxAnnotationBytes>>10)
		}
	}
	system.Annotation = strings.Join(annotation, "\n")
	for _, extension := range system.Extensions {
		if extension.Space == namespaceVirtualBox {
			system.Hardware.virtualBox(extension)
		}
	}
	if n := system.properties(); n > MaxProperties {
		return e.fail("has %d properties; at most %d are accepted", n, MaxProperties)
	}
	if err := d.duplicates(e, &system); err != nil {
		return err
	}
	d.envelope.Systems = append(d.envelope.Systems, system)
	d.systems = append(d.systems, e)
	return nil
}

func (s *System) properties() int {
	n := 0
	for _, product := range s.Products {
		n += len(product.Properties)
	}
	return n
}

// duplicates removes properties of collections that the system declares itself, and rejects other keys that occur twice.
func (d *decoder) duplicates(e *Element, system *System) error {
	last := map[string]int{}
	for i := range system.Products {
		product := &system.Products[i]
		for j := range product.Properties {
			key := product.FullKey(&product.Properties[j])
			if before, found := last[key]; found && before == i {
				return e.fail("the property %s is declared twice", shown(key))
			}
			last[key] = i
		}
	}
	for i := range system.Products {
		product := &system.Products[i]
		product.Properties = slices.DeleteFunc(slices.Clone(product.Properties), func(p Property) bool { return last[product.FullKey(&p)] != i })
	}
	return nil
}

func (d *decoder) operatingSystem(e *Element, system *OperatingSystem) {
	// Exporters of 0.9 write an ID that is no number.
	system.ID, _ = strconv.Atoi(e.Attribute("id"))
	system.Version, system.Description = e.Attribute("version"), d.text(e, "Description")
	system.VMware = e.Attribute("osType")
	for _, c := range e.Children {
		if c.Space == namespaceVirtualBox && c.Local == "OSType" {
			system.VirtualBox = c.Text
		}
	}
}

func (d *decoder) product(e *Element) (Product, error) {
	p := Product{
		Class: e.Attribute("class"), Instance: e.Attribute("instance"), Info: d.text(e, "Info"), Product: d.text(e, "Product"), Vendor: d.text(e, "Vendor"),
		Version: d.text(e, "Version"), FullVersion: d.text(e, "FullVersion"), ProductURL: d.text(e, "ProductUrl"), VendorURL: d.text(e, "VendorUrl"), AppURL: d.text(e, "AppUrl"),
	}
	category := ""
	for _, c := range e.Children {
		switch {
		case !isFormat(c.Space):
		case c.Local == "Category":
			if category = c.Text; category == "" {
				category = d.strings[c.Attribute("msgid")]
			}
		case c.Local == "Property":
			property, err := d.property(c, category)
			if err != nil {
				return p, err
			}
			p.Properties = append(p.Properties, property)
		}
	}
	return p, nil
}

func (d *decoder) property(e *Element, category string) (Property, error) {
	key, err := id(e, "key")
	if err != nil {
		return Property{}, err
	}
	p := Property{Key: key, Type: strings.ToLower(e.Attribute("type")), Qualifiers: qualifiers(e), Category: category}
	p.Label, p.Description = d.text(e, "Label"), d.text(e, "Description")
	p.Value, p.HasValue = e.attribute("value")
	p.UserConfigurable = isTrue(e.Attribute("userConfigurable"))
	p.Password = isTrue(e.Attribute("password"))
	switch p.Type {
	case "", "string":
		p.Type = "string"
	case "password":
		p.Type, p.Password = "string", true
	case "int":
		p.Type = "sint32"
	case "boolean", "uint8", "sint8", "uint16", "sint16", "uint32", "sint32", "uint64", "sint64", "real32", "real64":
	default:
		d.warn(e, "the type %s is unknown; the value is text", shown(p.Type))
		p.Type = "string"
	}
	for _, c := range e.Children {
		if c.Local != "Value" || !isFormat(c.Space) {
			continue
		}
		if configuration := c.Attribute("configuration"); configuration != "" {
			if p.Values == nil {
				p.Values = map[string]string{}
			}
			p.Values[configuration] = c.Attribute("value")
		} else {
			p.Value, p.HasValue = c.Attribute("value"), true
		}
	}
	return p, nil
}

// qualifiers returns the qualifiers of the format, and then those of VMware (vmw:qualifiers), which a property can have beside them.
func qualifiers(e *Element) string {
	all := []string{e.Attribute("qualifiers")}
	for _, a := range e.Attributes {
		if a.Local == "qualifiers" && !slices.Contains(all, a.Value) {
			all = append(all, a.Value)
		}
	}
	return strings.Join(all, " ")
}

func isTrue(value string) bool { return strings.EqualFold(value, "true") || value == "1" }
