package sample

import (
	"time"

	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Case is the request of an unspecified user who creates the VM of a template in a namespace. vm is nil for a template that has none: such a case is
// only good for its query.
func Case(t Template, vm *VM, namespace rego.Namespace, at time.Time) *policyinput.Case {
	metadata := t.Metadata()
	compiled, _ := t.Compiled()
	c := &policyinput.Case{
		Request:        rego.Request{Operation: "CREATE", Kind: rego.KindVirtualMachine, Namespace: namespace.Name, Time: at},
		Namespace:      namespace,
		Template:       &policyinput.Template{Namespace: metadata.Namespace, Name: metadata.Name, Labels: metadata.Labels, Annotations: metadata.Annotations, Compiled: compiled},
		IgnoreSubjects: true,
	}
	if vm != nil {
		own := mapAt(vm.Object, "metadata")
		own["namespace"] = namespace.Name
		c.Object, c.Objects, c.Request.Name = vm.Object, vm.Objects, machine.StringAt(own, "name")
	}
	return c
}
