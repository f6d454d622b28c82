package engine

import (
	"regexp"
	"strconv"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
)

// namedAddress finds the PCI address that a message of libvirt's is about.
var namedAddress = regexp.MustCompile(`\b([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])\b`)

// blame finds the fields that a refusal of libvirt's is about: addresses of the
// user's that it names. When it names none that is in the VirtualMachine, the refusal
// may be the defaulter's own fault, and is no reason to refuse the VirtualMachine.
func blame(message string, machine *domain.Machine) []defaulting.Cause {
	var causes []defaulting.Cause
	for _, match := range namedAddress.FindAllString(message, -1) {
		for _, holder := range domain.Holders(machine, match) {
			causes = append(causes, defaulting.Cause{Path: holder, Value: match, Detail: "libvirt: " + message + "; " + taken(match)})
		}
	}
	return causes
}

// taken says what else may want an address on the root bus.
func taken(address string) string {
	parsed, err := domain.ParseAddress(address)
	if err != nil || parsed.Bus != 0 {
		return "choose an address behind a root port, or leave it out"
	}
	return "slot " + strconv.FormatUint(uint64(parsed.Slot), 16) + " of bus 0 belongs to a device that every machine has; leave the address out"
}
