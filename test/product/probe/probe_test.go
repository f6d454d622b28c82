// Package probe_test depends on the product as every end-to-end test does, and does nothing else: the tests of package product run
// it to see when the Go command answers from its cache.
package probe_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/product"
)

func TestTheProductIsKnown(t *testing.T) {
	if _, err := product.Digest(); err != nil {
		t.Fatal(err)
	}
}
