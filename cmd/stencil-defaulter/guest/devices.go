package guest

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// element is any element of libvirt's description. It is read without the defaulter's own reader, and without a list of device kinds, so that none is
// missed.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
}

func (e element) attribute(name string) string {
	for _, attribute := range e.Attrs {
		if attribute.Name.Local == name {
			return attribute.Value
		}
	}
	return ""
}

func (e element) child(name string) (element, bool) {
	for _, child := range e.Children {
		if child.XMLName.Local == name {
			return child, true
		}
	}
	return element{}, false
}

// Devices returns everything in a domain that has a PCI address, by address: its kind, and then the value of fields for its alias, or what [ControllerName]
// returns for a controller.
func Devices(described string, fields map[string]string) (map[string]string, error) {
	var root element
	if err := xml.Unmarshal([]byte(described), &root); err != nil {
		return nil, fmt.Errorf("reading libvirt's description: %w", err)
	}
	list, found := root.child("devices")
	if !found {
		return nil, fmt.Errorf("reading libvirt's description: it has no devices")
	}
	at := map[string]string{}
	for _, device := range list.Children {
		address, found := device.child("address")
		if !found || address.attribute("type") != "pci" {
			continue
		}
		text := device.XMLName.Local
		alias, _ := device.child("alias")
		if field, asked := fields[alias.attribute("name")]; asked {
			text += " " + field
		} else if text == "controller" {
			text += " " + ControllerName(device.attribute("type"), device.attribute("model"), device.attribute("index"))
		}
		where, err := addressOf(address)
		if err != nil {
			return nil, err
		}
		if other, taken := at[where]; taken {
			return nil, fmt.Errorf("libvirt has put %s and %s at %s", other, text, where)
		}
		at[where] = text
	}
	return at, nil
}

// ControllerName identifies a controller of a domain.
func ControllerName(kind, model, index string) string {
	return strings.Join([]string{kind, model, index}, "/")
}

func addressOf(e element) (string, error) {
	var parts [4]uint64
	for i, name := range []string{"domain", "bus", "slot", "function"} {
		var err error
		if parts[i], err = strconv.ParseUint(strings.TrimPrefix(e.attribute(name), "0x"), 16, 16); err != nil {
			return "", fmt.Errorf("reading an address: %w", err)
		}
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", parts[0], parts[1], parts[2], parts[3]), nil
}

// pathsOf returns the path of every PCI device of a domain from the root bus, by its address.
func pathsOf(described string) (map[string]string, error) {
	found, err := Devices(described, nil)
	if err != nil {
		return nil, err
	}
	// The bridge to each bus.
	bridges := map[uint64]string{}
	for address, device := range found {
		kind, name, _ := strings.Cut(device, " ")
		parts := strings.Split(name, "/")
		if kind != "controller" || parts[0] != "pci" {
			continue
		}
		bus, err := strconv.ParseUint(parts[2], 10, 8)
		if err != nil {
			return nil, fmt.Errorf("reading the index of a controller: %w", err)
		}
		bridges[bus] = address
	}
	var path func(address string) (string, error)
	path = func(address string) (string, error) {
		parts := strings.Split(address, ":")
		bus, err := strconv.ParseUint(parts[1], 16, 8)
		if err != nil {
			return "", fmt.Errorf("reading an address: %w", err)
		}
		if bus == 0 {
			return parts[2], nil
		}
		bridge, err := path(bridges[bus])
		return bridge + "/" + parts[2], err
	}
	paths := map[string]string{}
	for address := range found {
		if paths[address], err = path(address); err != nil {
			return nil, err
		}
	}
	return paths, nil
}
