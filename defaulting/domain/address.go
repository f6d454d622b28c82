package domain

import (
	"fmt"
	"regexp"
	"strconv"
)

// Address is the PCI address of a device.
type Address struct {
	Domain   uint `json:"d,omitempty"`
	Bus      uint `json:"b,omitempty"`
	Slot     uint `json:"s,omitempty"`
	Function uint `json:"f,omitempty"`
}

// String returns the address in the API's format: 0000:01:00.0.
func (a Address) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", a.Domain, a.Bus, a.Slot, a.Function)
}

// addressPattern is the format that KubeVirt accepts as an address.
var addressPattern = regexp.MustCompile(`^([0-9a-fA-F]{4}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$`)

// ParseAddress parses an address in the API's format.
func ParseAddress(text string) (Address, error) {
	match := addressPattern.FindStringSubmatch(text)
	if match == nil {
		return Address{}, fmt.Errorf("%.64q is no PCI address: it has the form 0000:01:00.0", text)
	}
	var parts [4]uint
	for i := range parts {
		part, err := strconv.ParseUint(match[i+1], 16, 16)
		if err != nil {
			return Address{}, fmt.Errorf("reading %q as a PCI address: %w", text, err)
		}
		parts[i] = uint(part)
	}
	return Address{parts[0], parts[1], parts[2], parts[3]}, nil
}
