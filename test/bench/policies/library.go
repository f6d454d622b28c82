package policies

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	ready "github.com/vmstencil/stencil/policies/library"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	"github.com/vmstencil/stencil/rego"
)

// library is the policies of the library about VirtualMachines, by name.
type library []*policyspec.Spec

func readLibrary() (library, error) {
	all, err := ready.Policies()
	if err != nil {
		return nil, err
	}
	var l library
	for _, policy := range all {
		spec, problems := policyspec.Read(policy)
		if len(problems) > 0 {
			return nil, fmt.Errorf("policy %s: %w", policy.Name, problems.ToAggregate())
		}
		if slices.Contains(spec.Definition.Kinds, rego.KindVirtualMachine) {
			l = append(l, spec)
		}
	}
	return l, nil
}

// specs returns any number of them, taken in turns, each under a name of its own.
func (l library) specs(number int) library {
	list := make(library, number)
	for i := range list {
		copied := *l[i%len(l)]
		// The evaluation time is measured, so the deadline is the longest possible.
		copied.Timeout = 500 * time.Millisecond
		copied.Definition.Name = fmt.Sprintf("%s-%d", copied.Definition.Name, i)
		list[i] = &copied
	}
	return list
}

// compile compiles all, as many at a time as there are cores.
func (l library) compile(ctx context.Context, compiler *rego.Compiler) ([]policyset.Entry, error) {
	entries := make([]policyset.Entry, len(l))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, spec := range l {
		group.Go(func() error {
			policy, err := compiler.Compile(ctx, spec.Definition)
			if err != nil {
				return fmt.Errorf("compiling %s: %w", spec.Definition.Name, err)
			}
			entries[i] = spec.Entry(policy)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return entries, nil
}
