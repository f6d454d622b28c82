package cluster

import (
	"fmt"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Existing parses the argument of a command about one object that exists: NAME, in this namespace, or NAMESPACE/NAME. It rejects an option
// -n with another namespace, because one of both would have no effect. what is the kind of the object in errors.
func (f *Flags) Existing(what, argument, namespace string) (machine.Reference, error) {
	at, errs := machine.ParseReference(argument, namespace)
	if len(errs) > 0 {
		return at, cli.Usage(fmt.Errorf("%q is no name of a %s, want NAME or NAMESPACE/NAME", argument, what))
	}
	if given := f.Namespace(); given != "" && given != at.Namespace {
		return at, cli.Usage(fmt.Errorf("%s %s is in namespace %s, and -n names namespace %s: give one of both", what, at, at.Namespace, given))
	}
	return at, nil
}
