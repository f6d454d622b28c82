package catalogue

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/template"
)

func golden(t *testing.T) *v1beta1.VirtualMachineTemplate {
	t.Helper()
	content := testfile.Read(t, filepath.Join("..", "..", "..", "docs", "examples", "golden", "fedora.yaml"))
	read := &v1beta1.VirtualMachineTemplate{}
	if err := yaml.UnmarshalStrict(content, read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestVariantsAreValidAndDistinct(t *testing.T) {
	original := golden(t)
	seen := map[string]int{}
	for _, number := range []int{0, 1, 499, 500, 9999} {
		made, err := variant(original, number)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := template.Compile(made)
		if err != nil {
			t.Fatalf("variant %d does not compile: %v", number, err)
		}
		if before, found := seen[compiled.Digest()]; found {
			t.Errorf("variants %d and %d are equal", before, number)
		}
		seen[compiled.Digest()] = number
	}
	if diff := cmp.Diff(golden(t), original); diff != "" {
		t.Errorf("making variants changed the golden template (-want +got):\n%s", diff)
	}
}

func TestVariantRefusesATemplateThatItWouldOnlyCopy(t *testing.T) {
	other := golden(t)
	other.Spec.VirtualMachine.Raw = []byte(`{"spec":{}}`)
	if _, err := variant(other, 1); err == nil {
		t.Error("want an error, or 10 000 templates would be one")
	}
}
