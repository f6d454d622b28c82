package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/preflight"
	"github.com/vmstencil/stencil/reconcilers/uninstall"
)

// NewCommand returns the command install with its subcommands.
func NewCommand(streams cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "install",
		Short: "Check whether a cluster is ready for Stencil, move templates to and from it, and prepare its removal",
		Long:  "Check whether a cluster is ready for Stencil, move templates between KubeVirt's own template component and Stencil, and prepare its removal. Helm installs and uninstalls it.",
	}
	command.AddCommand(newCheck(streams), newTakeover(streams), newRelease(streams), newMigrateStorage(streams), newRemove(streams))
	return command
}

// check is the command install check.
type check struct {
	streams cli.Streams
	cluster cluster.Flags
	format  *cli.Format
	release string
	api     string
}

func newCheck(streams cli.Streams) *cobra.Command {
	c := check{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "check",
		Short: "Check what Stencil would meet in a cluster",
		Long: `Check what Stencil would meet in a cluster, before it is installed, and before KubeVirt is upgraded: the versions of the API server,
KubeVirt and CDI, whether KubeVirt's own template component is on, who owns the definitions and APIServices that both have, and webhooks that change VirtualMachines
after Stencil has filled in their defaults, stored templates that Stencil would reject, and objects that failed revisions of the release have left.

Nothing is changed. It takes permission to get customresourcedefinitions, apiservices and validatingadmissionpolicies, and to list kubevirts, cdis,
templates and their requests in all namespaces, objects about admission, roles and bindings, and what is in the namespace of the release. The exit code is 1 if there is a problem.`,
		Example: `  stencilctl install check
  stencilctl install check --release stencil-system/stencil -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, _ []string) error { return c.run(command.Context()) },
	}
	command.Flags().StringVar(&c.release, "release", "stencil-system/stencil", "NAMESPACE/NAME of Stencil's Helm release")
	command.Flags().StringVar(&c.api, "template-api", "", "the chart's value templateAPI that is to be installed, Own or External; by default that of the installed release, or else Own")
	c.cluster.RegisterUnnamespaced(command.Flags())
	c.format.Register(command, "output", "o")
	return command
}

func (c *check) run(ctx context.Context) error {
	namespace, name, err := named(c.release)
	if err != nil {
		return err
	}
	api := installation.TemplateAPI(c.api)
	if api != "" && !api.Known() {
		return cli.Usage(fmt.Errorf("--template-api %s: write %s or %s", api, installation.Own, installation.External))
	}
	client, err := c.cluster.Client(c.streams.Err)
	if err != nil {
		return err
	}
	client.Namespace = ""
	state, err := preflight.Read(ctx, reader{client}, name, preflight.Extent{TemplateAPI: api, Webhooks: true, Rest: true})
	if err != nil {
		return err
	}
	findings := installation.Check(state, c.release)
	rejected, err := unusable(ctx, client)
	if err != nil {
		return err
	}
	findings = append(findings, rejected...)
	config, err := c.cluster.Config(c.streams.Err)
	if err != nil {
		return err
	}
	err = uninstall.Leftovers(ctx, config, uninstall.Release{Namespace: namespace, Name: name}, true, func(step uninstall.Step) {
		findings = append(findings, installation.Finding{
			Level: installation.Problem, Subject: step.Object, Found: "is left: " + step.Note, Action: "run stencilctl install remove --release " + c.release,
		})
	})
	if err != nil {
		findings = append(findings, installation.Finding{
			Level: installation.Warning, Subject: "leftovers", Found: "objects that failed revisions have left were not looked for: " + strings.ReplaceAll(err.Error(), "\n", "; "),
		})
	}
	if err := c.write(findings); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f installation.Finding) bool { return f.Level == installation.Problem }) {
		return cli.ErrFindings
	}
	return nil
}

// named splits the value of --release.
func named(release string) (namespace, name string, err error) {
	namespace, name, _ = strings.Cut(release, "/")
	if namespace == "" || name == "" {
		return "", "", cli.Usage(fmt.Errorf("--release %s: write NAMESPACE/NAME", release))
	}
	return namespace, name, nil
}

func (c *check) write(findings []installation.Finding) error {
	if !c.format.Is(cli.Table) {
		return c.format.Write(c.streams.Out, map[string]any{"findings": findings})
	}
	for i, f := range findings {
		fmt.Fprintf(c.streams.Out, "%-8s %s: %s\n", f.Level, f.Subject, f.Found)
		// What has to be done about several objects is written once.
		if last := i == len(findings)-1 || findings[i+1].Action != f.Action; f.Action != "" && last {
			fmt.Fprintf(c.streams.Out, "         %s\n", f.Action)
		}
	}
	return nil
}

// reader reads with errors that say what was read.
type reader struct{ *cluster.Client }

func (r reader) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (map[string]any, error) {
	object, err := r.Client.Get(ctx, resource, namespace, name)
	return object, cluster.Failed("reading "+resource.Resource+" "+name, err)
}
