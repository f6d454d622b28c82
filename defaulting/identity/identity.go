// Package identity generates the values that identify VMs and their interfaces.
package identity

import (
	"crypto/rand"
	"fmt"
)

// Random generates identities from the system's random number generator.
type Random struct{}

// UUID returns a random UUID (RFC 9562, version 4).
func (Random) UUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// MAC returns a locally administered unicast address with 46 random bits.
func (Random) MAC() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	b[0] = b[0]&^0x01 | 0x02
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5])
}
