// Package approve holds the command approve: it creates a TemplateApproval, or adds to one.
package approve

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
)

var approvals = v1alpha1.GroupVersion.WithResource("templateapprovals")

// approving is the command approve.
type approving struct {
	streams cli.Streams
	cluster cluster.Flags
	added   addition
	dryRun  cli.DryRun
	format  *cli.Format
}

// NewCommand returns the command.
func NewCommand(streams cli.Streams) *cobra.Command {
	a := approving{streams: streams, format: cli.NewFormat(cli.Table, cli.YAML, cli.JSON, cli.Name)}
	command := &cobra.Command{
		Use:   "approve NAME --template NAMESPACE/NAME --namespace NAMESPACE",
		Short: "Approve templates for namespaces",
		Long: `Approve templates for namespaces: create the TemplateApproval NAME, or add to an existing one.

Existing entries are not removed, and repeating a command changes nothing. It takes permission to get, and to create or update
templateapprovals. Namespaces that an approval selects are governed: what is not approved there is denied.
Parameters of the templates that are listed neither by --allow nor by --any-value keep their defaults.
With --dry-run=client nothing is written, with --dry-run=server the cluster evaluates what it would store.`,
		Example: `  stencilctl approve team-a --template golden/fedora --template golden/ubuntu --namespace team-a
  stencilctl approve team-a --allow INSTANCETYPE=u1.small,u1.medium --any-value SSH_KEY --override spec.runStrategy
  stencilctl approve team-b --template 'catalogue/*' --namespace team-b --dry-run=client -o yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return a.run(command.Context(), names[0]) },
	}
	a.added.register(command)
	a.dryRun.Register(command)
	a.cluster.RegisterUnnamespaced(command.Flags())
	a.format.Register(command, "output", "o")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("template", a.cluster.CompleteReferences(cluster.VirtualMachineTemplate))
	a.cluster.CompleteNamespaces(command)
	return command
}

func (a *approving) run(ctx context.Context, name string) error {
	if err := a.added.parse(); err != nil {
		return err
	}
	client, err := a.cluster.Client(a.streams.Err)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		written, did, err := a.write(ctx, client, name)
		if (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) && attempt < cluster.MaxConflicts {
			continue // it was changed, or created, since it was read
		}
		if err != nil {
			return cluster.Failed("approving", err)
		}
		return a.print(written, did)
	}
}

// write creates or updates the approval, and returns what it did. The error is the API
// server's, or marked with an exit code.
func (a *approving) write(ctx context.Context, client *cluster.Client, name string) (object map[string]any, did string, err error) {
	object, err = client.Get(ctx, approvals, "", name)
	if err != nil {
		return nil, "", err
	}
	how := cluster.Written{DryRun: a.dryRun.Server()}
	if object == nil {
		object = map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "TemplateApproval",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{},
		}
		if _, err := a.extend(object, name); err != nil {
			return nil, "", err
		}
		if !a.dryRun.Client() {
			object, err = client.Create(ctx, approvals, "", object, how)
		}
		return object, "created", err
	}
	changed, err := a.extend(object, name)
	switch {
	case err != nil:
		return nil, "", err
	case !changed:
		return object, "unchanged", nil
	case a.dryRun.Client():
		return object, "extended", nil
	}
	object, err = client.Update(ctx, approvals, "", name, object, how)
	return object, "extended", err
}

// extend adds to an approval, which may have fields unknown to this version, and validates the
// result as the cluster will.
func (a *approving) extend(object map[string]any, name string) (changed bool, err error) {
	var read v1alpha1.TemplateApproval
	if err := templates.Decode(object, &read); err != nil {
		return false, cli.Cluster(fmt.Errorf("reading the TemplateApproval: %w", err))
	}
	changed = a.added.to(&read.Spec)
	if len(read.Spec.Templates) == 0 {
		return false, cli.Usage(fmt.Errorf("TemplateApproval %s is a new one: it needs a --template", name))
	}
	if len(read.Spec.Namespaces) == 0 && read.Spec.NamespaceSelector == nil {
		return false, cli.Usage(fmt.Errorf("TemplateApproval %s is a new one: it needs a --namespace", name))
	}
	var invalid *approval.InvalidError
	if _, err := approval.Compile(&read); errors.As(err, &invalid) {
		text := "the approval would not be valid:"
		for _, cause := range invalid.Causes {
			text += "\n  " + cause.Error()
		}
		return false, cli.Usage(errors.New(text))
	}
	if !changed {
		return false, nil
	}
	spec, _ := object["spec"].(map[string]any)
	return true, a.added.write(&read.Spec, spec)
}

func (a *approving) print(object map[string]any, did string) error {
	metadata, _ := object["metadata"].(map[string]any)
	name := fmt.Sprintf("templateapproval.%s/%v", v1alpha1.GroupVersion.Group, metadata["name"])
	switch {
	case a.format.Is(cli.Name):
		fmt.Fprintln(a.streams.Out, name)
	case a.format.Is(cli.Table):
		fmt.Fprintf(a.streams.Out, "%s %s%s\n", name, did, a.dryRun.Suffix())
	default:
		delete(metadata, "managedFields")
		return a.format.Write(a.streams.Out, object)
	}
	return nil
}
