package fingerprint_test

import (
	"testing"

	"github.com/vmstencil/stencil/reconcilers/internal/fingerprint"
)

func TestOf(t *testing.T) {
	one := fingerprint.Of(map[string]string{"a": "1", "b": "2"}, map[string]string{})
	if fingerprint.Of(map[string]string{"b": "2", "a": "1"}, map[string]string{}) != one {
		t.Error("equal maps have different fingerprints")
	}
	for _, other := range []fingerprint.Fingerprint{
		fingerprint.Of(map[string]string{"a": "1", "b": "3"}, map[string]string{}),
		fingerprint.Of(map[string]string{}, map[string]string{"a": "1", "b": "2"}),
		fingerprint.Of(map[string]string{"a": "1", "b": "2"}), fingerprint.Of(), fingerprint.Of("x"),
	} {
		if other == one {
			t.Error("different values have the same fingerprint")
		}
	}
}
