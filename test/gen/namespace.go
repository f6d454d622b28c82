package gen

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Namespace builds a Namespace.
func Namespace(name string, modifiers ...Modifier) *unstructured.Unstructured {
	return build("v1", "Namespace", name, modifiers)
}
