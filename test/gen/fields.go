package gen

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Fields lays fields in YAML over the object as Merge does. It panics when the text is not a map in YAML.
func Fields(text string) Modifier { return lay(parse(text)) }

// Spec is Fields below spec.
func Spec(text string) Modifier { return lay(map[string]any{"spec": parse(text)}) }

func lay(fields map[string]any) Modifier {
	return func(object *unstructured.Unstructured) {
		Merge(object.Object, (&unstructured.Unstructured{Object: fields}).DeepCopy().Object)
	}
}

// parse returns a map in YAML. It panics when the text is something else.
func parse(text string) map[string]any {
	var fields map[string]any
	if err := utilyaml.Unmarshal([]byte(text), &fields); err != nil {
		panic(fmt.Sprintf("gen: reading the fields %q: %v", text, err))
	}
	return fields
}

// Manifest prints objects as a stream of YAML documents, for the standard input of kubectl.
func Manifest(objects ...*unstructured.Unstructured) string {
	documents := make([]string, 0, len(objects))
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			panic(fmt.Sprintf("gen: printing %s %s: %v", object.GetKind(), object.GetName(), err))
		}
		documents = append(documents, string(text))
	}
	return strings.Join(documents, "---\n")
}

// Merge lays upper over lower: maps merge, anything else replaces.
func Merge(lower, upper map[string]any) {
	for key, value := range upper {
		below, isMap := lower[key].(map[string]any)
		above, areMaps := value.(map[string]any)
		if isMap && areMaps {
			Merge(below, above)
			continue
		}
		lower[key] = value
	}
}

// set sets one field, and makes the maps on the way to it. It panics when one of them is something else.
func set(object *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		panic(fmt.Sprintf("gen: setting %s: %v", strings.Join(path, "."), err))
	}
}

// add appends an item to a list, and makes the list and the maps on the way to it.
func add(object *unstructured.Unstructured, item any, path ...string) {
	items, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil {
		panic(fmt.Sprintf("gen: adding to %s: %v", strings.Join(path, "."), err))
	}
	set(object, append(items, item), path...)
}
