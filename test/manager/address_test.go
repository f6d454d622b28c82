package manager

import (
	"path/filepath"
	"testing"
)

// TestAPortIsReservedOnce verifies that a port is not given away twice, also while nothing listens on it.
func TestAPortIsReservedOnce(t *testing.T) {
	address, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "port")
	if err := reserve(path, address); err != nil {
		t.Fatal(err)
	}
	if err := reserve(path, address); err == nil {
		t.Error("the same port was reserved again")
	}
}
