package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// refersTo returns the template to which a VirtualMachine that is rendered here refers, nil for none. Where the user may
// expect a reference, it prints why there is none.
func (p *processing) refersTo(ctx context.Context, name string, t *templates.Template) (*machine.Reference, error) {
	if !p.reference || p.create && name == "" {
		// A template in a file may not be in the cluster.
		return nil, nil
	}
	if !p.create && !p.format.Is(cli.YAML) && !p.format.Is(cli.JSON) {
		return nil, nil
	}
	at, why, err := p.origin(ctx, name, t)
	if err != nil {
		return nil, err
	}
	if why != "" {
		fmt.Fprintf(p.streams.Err, "Note: the VirtualMachine does not refer to a template, because %s\n", why)
		return nil, nil
	}
	return &at, nil
}

// origin returns where the cluster has a template, or why a VirtualMachine cannot refer to it.
func (p *processing) origin(ctx context.Context, name string, t *templates.Template) (at machine.Reference, why string, err error) {
	if len(t.Compiled.Objects()) > 0 {
		return at, "the cluster would then create its other objects itself, with other values", nil
	}
	if name == "" {
		at = machine.Reference{Namespace: t.Object.Namespace, Name: t.Object.Name}
		if at.Namespace == "" {
			at.Namespace = p.cluster.Namespace()
		}
		switch {
		case at.Name == "":
			why = "the template has no name"
		case at.Namespace == "":
			why = "the file does not have the namespace of the template: give it with -n"
		default:
			if _, errs := machine.ParseReference(at.String(), ""); len(errs) > 0 {
				why = fmt.Sprintf("%s is no name of a template in a cluster", at)
			}
		}
		return at, why, nil
	}
	client, err := p.cluster.Client(p.streams.Err)
	if err != nil {
		return at, "", err
	}
	if at, err = reference(name, client); err != nil {
		return at, "", err
	}
	may, err := client.May(ctx, templateAccess("use", at))
	if _, denied := cluster.RefusalOf(err); err != nil && !denied {
		return at, "", cluster.Failed("checking the permission to use template "+at.String(), err)
	}
	if !may {
		why = fmt.Sprintf("you may not use %s, which takes verb use on it", at)
	}
	return at, why, nil
}

// errReference is the error of a flag that has no effect.
var errReference = errors.New("--reference is for templates that are rendered here: with -f or --local")
