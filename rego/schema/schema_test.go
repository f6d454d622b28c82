package schema

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryKindHasASchema(t *testing.T) {
	embedded, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range append(Kinds(), Instancetype, Preference) {
		schema, err := embedded.resource(kind)
		if err != nil {
			t.Error(err)
			continue
		}
		properties := schema["properties"].(map[string]any)
		for _, name := range []string{"apiVersion", "kind", "metadata", "spec"} {
			if properties[name] == nil {
				t.Errorf("%s has no %s", kind, name)
			}
		}
	}
	if _, err := embedded.Input([]string{"Pod"}, false); err == nil || err.Error() != `there is no schema of kind "Pod"` {
		t.Errorf("a kind without schema: %v", err)
	}
}

func TestManagedFieldsAreNotInTheSchemas(t *testing.T) {
	if slices.Contains(FieldNames(), "managedFields") {
		t.Error("managedFields are in the schemas, and never in the input")
	}
}

// TestSchemasAreOfTheVersionsInUse checks fields at the edges of the API.
func TestSchemasAreOfTheVersionsInUse(t *testing.T) {
	names := FieldNames()
	for _, name := range strings.Fields("runStrategy instancetype dedicatedCpuPlacement hostDevices containerDisk userDataBase64 maxSockets secureBoot virtualMachineRef objectLabels preferredCPUTopology") {
		if !slices.Contains(names, name) {
			t.Errorf("no schema has %s", name)
		}
	}
}
