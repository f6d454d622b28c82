package input

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// Resolve sets the instance type and the preference of a VirtualMachine. It returns an
// error for each one that is named and not found: policies that check sizes would treat
// the VirtualMachine as one without it. A VirtualMachine that is being deleted needs
// neither; there are no errors then.
func (c *Case) Resolve(ctx context.Context, from sizing.Resolver) field.ErrorList {
	if c.Request.Kind != rego.KindVirtualMachine {
		return nil
	}
	var errs field.ErrorList
	resolve := func(refer func(object map[string]any, namespace string) (*sizing.Reference, *field.Error)) map[string]any {
		reference, err := refer(c.subject(), c.Request.Namespace)
		if err != nil {
			errs = append(errs, err)
		}
		if reference == nil {
			return nil
		}
		object, unknown := from.Resolve(ctx, *reference)
		if unknown != nil {
			errs = append(errs, &field.Error{Type: field.ErrorTypeNotFound, Field: reference.Path.String(), BadValue: reference.String(), Detail: unknown.Error()})
			return nil
		}
		return object
	}
	c.Instancetype = resolve(sizing.Instancetype)
	c.Preference = resolve(sizing.Preference)
	if c.Request.Operation == operationDelete {
		return nil
	}
	return errs
}
