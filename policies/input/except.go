package input

import (
	"time"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// Except moves the violations that exceptions allow to Decision.Excepted. Only VirtualMachines
// that are created or updated have exceptions, no other object that runs a VM, and
// no other kind. at is the time at which exceptions must not have ended. Call it last: what
// AddUnresolved adds has no exceptions.
func (c *Case) Except(d *policyset.Decision, exceptions *policyset.Exceptions, at time.Time) {
	if c.Request.Kind != rego.KindVirtualMachine || c.Viewed() || c.Request.Operation == operationDelete {
		return
	}
	vm := policyset.VirtualMachine{Namespace: c.Request.Namespace, Name: c.Request.Name}
	if !c.IgnoreSubjects {
		vm.User = &c.Request.UserInfo
	}
	exceptions.Except(d, vm, at)
}
