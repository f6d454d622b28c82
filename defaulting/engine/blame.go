package engine

import (
	"regexp"
	"strconv"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
)

// namedAddress matches the PCI addresses in a message of libvirt.
var namedAddress = regexp.MustCompile(`\b([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])\b`)

// blame returns the fields that a rejection by libvirt refers to: the user-specified addresses
// in its message. If the message has no address of the VirtualMachine, the defaulter itself may
// be at fault, so the VirtualMachine is not rejected.
func blame(message string, prepared *domain.PreparedVM) []defaulting.Cause {
	var causes []defaulting.Cause
	for _, match := range namedAddress.FindAllString(message, -1) {
		for _, holder := range domain.Holders(prepared, match) {
			causes = append(causes, defaulting.Cause{Path: holder, Value: match, Detail: "libvirt: " + message + "; " + taken(match)})
		}
	}
	return causes
}

// taken returns how to avoid a conflict about an address.
func taken(address string) string {
	parsed, err := domain.ParseAddress(address)
	if err != nil || parsed.Bus != 0 {
		return "choose an address behind a root port, or leave it out"
	}
	return "slot " + strconv.FormatUint(uint64(parsed.Slot), 16) + " of bus 0 belongs to a device that every VM has; leave the address out"
}
