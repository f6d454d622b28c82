package platform

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/product"
)

// TestResultsOnASharedPlatformFollowTheProduct checks that a package on a shared platform reads the digest of the product: the platform runs in
// another process, and without that call the Go command would return a cached result after the product has changed.
func TestResultsOnASharedPlatformFollowTheProduct(t *testing.T) {
	t.Setenv(product.Variable, "")
	t.Setenv(SharedVariable, "/nowhere/platform.sock")
	if _, err := Shared(t.Context()); err == nil || !strings.Contains(err.Error(), product.Variable+" is not set") {
		t.Errorf("Shared without a digest returns %v", err)
	}
}
