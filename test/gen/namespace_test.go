package gen_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/vmstencil/stencil/test/gen"
)

// equal checks that an object is the one in YAML, whatever its order.
func equal(t *testing.T, object *unstructured.Unstructured, want string) {
	t.Helper()
	var fields map[string]any
	if err := utilyaml.Unmarshal([]byte(want), &fields); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fields, object.Object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestNamespace(t *testing.T) {
	equal(t, gen.Namespace("shop", gen.Label("tier", "vault")), `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {tier: vault}}
`)
}
