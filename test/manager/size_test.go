package manager

import (
	"bytes"
	"os"
	"testing"

	"github.com/vmstencil/stencil/test/product"
)

// TestServersAreLinkedWithoutUnusedMethods prevents that a dependency brings back a call of any method by its name: then the linker retains
// all exported methods, and a server takes 15 MiB more.
func TestServersAreLinkedWithoutUnusedMethods(t *testing.T) {
	for _, program := range []Program{StencilManager, StencilAPIServer} {
		path, err := product.Binary(t.Context(), string(program))
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// The executor of text/template is the usual cause. `go build -ldflags=-dumpdep` lists what refers to it, beside <ReflectMethod>.
		if bytes.Contains(content, []byte("text/template.(*state).evalField")) {
			t.Errorf("%s executes text/template", program)
		}
	}
}
