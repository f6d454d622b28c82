package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/offline"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/rego"
)

// requests are the flags that specify the requests to evaluate.
type requests struct {
	objects, old              []string
	templates                 []string
	instancetypes, preference []string
	policies                  []string

	request offline.Request
	user    string
	groups  []string
}

func (r *requests) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVarP(&r.policies, "policy", "p", nil, "files or folders with policies")
	flags.StringSliceVarP(&r.objects, "filename", "f", nil, "files with the objects to evaluate; Namespaces, instance types and templates in them are used")
	flags.StringSliceVar(&r.old, "old", nil, "files with the objects as they were before: makes the request an update")
	flags.StringSliceVar(&r.templates, "template-file", nil, "files with the templates that VirtualMachines name; one that is not rendered yet is")
	flags.StringSliceVar(&r.instancetypes, "instancetype-file", nil, "files with the instance types that VirtualMachines name")
	flags.StringSliceVar(&r.preference, "preference-file", nil, "files with the preferences that VirtualMachines name")
	flags.StringVar(&r.request.Operation, "operation", "", "CREATE, UPDATE or DELETE (default CREATE, or UPDATE with --old)")
	flags.StringVarP(&r.request.Namespace, "namespace", "n", "default", "namespace of objects that name none")
	flags.StringToStringVar(&r.request.NamespaceLabels, "namespace-labels", nil, "labels of the namespaces: KEY=VALUE,...")
	flags.StringVar(&r.user, "user", "", "user of the request; without --user and --group, the subjects of policies are ignored")
	flags.StringSliceVar(&r.groups, "group", nil, "groups of the user")
	flags.BoolVar(&r.request.DryRun, "request-dry-run", false, "the request is a dry run")
	cli.Alias(command, "template", "template-file")
	cli.Alias(command, "instancetype", "instancetype-file")
	cli.Alias(command, "preference", "preference-file")
	cli.Alias(command, "dry-run", "request-dry-run")
	registerTime(flags, &r.request.Time)
	_ = command.RegisterFlagCompletionFunc("operation", cobra.FixedCompletions([]string{offline.Create, offline.Update, offline.Delete}, cobra.ShellCompDirectiveNoFileComp))
}

// fixture reads the files.
func (r *requests) fixture(reader *source.Reader) (*offline.Fixture, error) {
	r.request.Operation = strings.ToUpper(r.request.Operation)
	switch r.request.Operation {
	case "", offline.Create, offline.Update, offline.Delete:
	default:
		return nil, cli.Usage(fmt.Errorf("--operation %s: must be CREATE, UPDATE or DELETE", r.request.Operation))
	}
	r.request.User = rego.UserInfo{Username: r.user, Groups: r.groups}
	switch {
	case len(r.objects) == 0:
		return nil, cli.Usage(errors.New("the objects to evaluate must be given (-f)"))
	case len(r.policies) == 0:
		return nil, cli.Usage(errors.New("policies must be given (-p)"))
	}
	subjects, err := reader.Objects(r.objects)
	if err != nil {
		return nil, err
	}
	old, err := reader.Objects(r.old)
	if err != nil {
		return nil, err
	}
	var contextObjects []source.Object
	for _, paths := range [][]string{r.templates, r.instancetypes, r.preference} {
		found, err := reader.Objects(paths)
		if err != nil {
			return nil, err
		}
		contextObjects = append(contextObjects, found...)
	}
	return offline.NewFixture(subjects, old, contextObjects)
}

// each calls a function for each request.
func (r *requests) each(ctx context.Context, fixture *offline.Fixture, call func(*offline.Case) error) error {
	for i := range fixture.Subjects {
		c, err := fixture.Case(ctx, &fixture.Subjects[i], r.request)
		if err != nil {
			return err
		}
		if err := call(c); err != nil {
			return err
		}
	}
	return nil
}

// registerTime adds the flag --time.
func registerTime(flags *pflag.FlagSet, at *time.Time) {
	flags.TimeVar(at, "time", time.Time{}, []string{time.RFC3339}, "input.request.time, as in 2026-11-27T08:00:00Z; without it policies see null")
}
