package gen

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Modifier changes an object that is being built.
type Modifier func(object *unstructured.Unstructured)

// build builds an object. An empty name leaves metadata.name out.
func build(apiVersion, kind, name string, modifiers []Modifier) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{}}}
	if name != "" {
		object.SetName(name)
	}
	for _, modify := range modifiers {
		modify(object)
	}
	return object
}

// APIVersion replaces the API version, such as kubevirt.io/v1alpha3.
func APIVersion(apiVersion string) Modifier {
	return func(object *unstructured.Unstructured) { object.SetAPIVersion(apiVersion) }
}

// InNamespace sets the namespace.
func InNamespace(namespace string) Modifier {
	return func(object *unstructured.Unstructured) { object.SetNamespace(namespace) }
}

// GenerateName sets the prefix from which the API server makes a name.
func GenerateName(prefix string) Modifier {
	return func(object *unstructured.Unstructured) { object.SetGenerateName(prefix) }
}

// Label adds a label.
func Label(key, value string) Modifier {
	return func(object *unstructured.Unstructured) { set(object, value, "metadata", "labels", key) }
}

// Annotation adds an annotation.
func Annotation(key, value string) Modifier {
	return func(object *unstructured.Unstructured) { set(object, value, "metadata", "annotations", key) }
}
