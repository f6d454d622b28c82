package identity_test

import (
	"net"
	"testing"

	"github.com/vmstencil/stencil/defaulting/identity"
)

func TestMACAddressesAreLocalUnicastWithChanceInEveryOtherBit(t *testing.T) {
	var ever, always [6]byte
	for i := range always {
		always[i] = 0xff
	}
	for range 1000 {
		address, err := net.ParseMAC(identity.Random{}.MAC())
		if err != nil {
			t.Fatal(err)
		}
		for i, octet := range address {
			ever[i] |= octet
			always[i] &= octet
		}
	}
	if want := [6]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff}; ever != want {
		t.Errorf("bits that are ever set: %x, want %x", ever, want)
	}
	if want := [6]byte{0x02}; always != want {
		t.Errorf("bits that are always set: %x, want %x", always, want)
	}
}
