package gen

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Approval builds a TemplateApproval.
func Approval(name string, modifiers ...Modifier) *unstructured.Unstructured {
	return build(v1alpha1.GroupVersion.String(), "TemplateApproval", name, modifiers)
}

// Governs adds namespaces to which the approval applies.
func Governs(namespaces ...string) Modifier {
	return func(approval *unstructured.Unstructured) {
		for _, namespace := range namespaces {
			add(approval, namespace, "spec", "namespaces")
		}
	}
}

// Approves adds templates, as NAMESPACE/NAME, or as NAMESPACE/* for all of a namespace.
func Approves(references ...string) Modifier {
	return func(approval *unstructured.Unstructured) {
		for _, reference := range references {
			namespace, name, _ := strings.Cut(reference, "/")
			template := map[string]any{"namespace": namespace, "name": name}
			if name == "*" {
				template = map[string]any{"namespace": namespace, "selector": map[string]any{}}
			}
			add(approval, template, "spec", "templates")
		}
	}
}

// AnyValue adds parameters that may have any value.
func AnyValue(parameters ...string) Modifier {
	return func(approval *unstructured.Unstructured) {
		for _, name := range parameters {
			add(approval, map[string]any{"name": name, "anyValue": true}, "spec", "parameters")
		}
	}
}

// Overrides adds paths of fields that may be set beside the template.
func Overrides(paths ...string) Modifier {
	return func(approval *unstructured.Unstructured) {
		for _, path := range paths {
			add(approval, path, "spec", "overrides")
		}
	}
}
