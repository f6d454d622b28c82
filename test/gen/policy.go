package gen

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Policy builds a VirtualMachinePolicy with a module in Rego.
func Policy(name, module string, modifiers ...Modifier) *unstructured.Unstructured {
	rego := func(policy *unstructured.Unstructured) { set(policy, module, "spec", "rego") }
	return build(v1alpha1.GroupVersion.String(), "VirtualMachinePolicy", name, append([]Modifier{rego}, modifiers...))
}
