package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/installation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	policies    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	kubeVirts   = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	cdis        = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "cdis"}
)

// NewCommand returns the command install with its subcommands.
func NewCommand(streams cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "install",
		Short: "Check whether a cluster is ready for Stencil, move templates to and from it, and prepare its removal",
		Long:  "Check whether a cluster is ready for Stencil, move templates between KubeVirt's own template component and Stencil, and prepare its removal. Helm installs and uninstalls it.",
	}
	command.AddCommand(newCheck(streams), newTakeover(streams), newRelease(streams), newRemove(streams))
	return command
}

// check is the command install check.
type check struct {
	streams cli.Streams
	cluster cluster.Flags
	format  *cli.Format
	release string
}

func newCheck(streams cli.Streams) *cobra.Command {
	c := check{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "check",
		Short: "Check what Stencil would meet in a cluster",
		Long: `Check what Stencil would meet in a cluster, before it is installed, and before KubeVirt is upgraded: the versions of the API server,
KubeVirt and CDI, whether KubeVirt's own template component is on, and who owns the definitions and APIServices that both have.

Nothing is changed. It takes permission to get customresourcedefinitions, apiservices and validatingadmissionpolicies, and to list kubevirts, cdis, and templates and
their requests in all namespaces. The exit code is 1 if there is a problem.`,
		Example: `  stencilctl install check
  stencilctl install check --release stencil-system/stencil -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, _ []string) error { return c.run(command.Context()) },
	}
	command.Flags().StringVar(&c.release, "release", "stencil-system/stencil", "NAMESPACE/NAME of Stencil's Helm release")
	c.cluster.RegisterUnnamespaced(command.Flags())
	c.format.Register(command, "output", "o")
	return command
}

func (c *check) run(ctx context.Context) error {
	_, name, err := named(c.release)
	if err != nil {
		return err
	}
	client, err := c.cluster.Client(c.streams.Err)
	if err != nil {
		return err
	}
	client.Namespace = ""
	state, err := read(ctx, client, name)
	if err != nil {
		return err
	}
	findings := installation.Check(state, c.release)
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

// read reads what a cluster has. The name of the release begins the name of the chart's policy.
func read(ctx context.Context, client *cluster.Client, release string) (installation.State, error) {
	s := installation.State{Objects: map[string]installation.Object{}, Templates: -1, Requests: -1}
	var err error
	if s.APIServer, err = client.Version(ctx); err != nil {
		return s, err
	}
	for resource, names := range map[schema.GroupVersionResource][]string{definitions: installation.Definitions, apiServices: installation.APIServices} {
		for _, name := range names {
			object, err := client.Get(ctx, resource, "", name)
			if err != nil {
				return s, cluster.Failed("reading "+resource.Resource+" "+name, err)
			}
			if object != nil {
				metadata := machine.MapAt(object, "metadata")
				s.Objects[name] = installation.Object{
					Labels: texts(metadata, "labels"), Annotations: texts(metadata, "annotations"), Deleting: metadata["deletionTimestamp"] != nil,
				}
			}
		}
	}
	policy, err := client.Get(ctx, policies, "", guard(release))
	if err != nil {
		return s, cluster.Failed("reading validatingadmissionpolicies "+guard(release), err)
	}
	s.Guarded = policy != nil
	count := func(into *int) func(map[string]any) error {
		*into = 0
		return func(map[string]any) error { *into++; return nil }
	}
	for _, listed := range []struct {
		resource schema.GroupVersionResource
		visit    func(map[string]any) error
	}{
		{kubeVirts, func(object map[string]any) error { s.KubeVirts = append(s.KubeVirts, kubeVirt(object)); return nil }},
		{cdis, func(object map[string]any) error {
			s.CDIs = append(s.CDIs, product(object, "observedVersion"))
			return nil
		}},
		{v1beta1.GroupVersion.WithResource("virtualmachinetemplates"), count(&s.Templates)},
		{v1beta1.GroupVersion.WithResource("virtualmachinetemplaterequests"), count(&s.Requests)},
	} {
		defined, err := client.Get(ctx, definitions, "", listed.resource.GroupResource().String())
		if err != nil {
			return s, cluster.Failed("reading customresourcedefinitions "+listed.resource.GroupResource().String(), err)
		}
		if defined == nil {
			continue
		}
		if err := client.List(ctx, listed.resource, "", listed.visit); err != nil {
			return s, err
		}
	}
	return s, nil
}

func product(object map[string]any, version string) installation.Product {
	metadata, status := machine.MapAt(object, "metadata"), machine.MapAt(object, "status")
	return installation.Product{
		Namespace: machine.StringAt(metadata, "namespace"), Name: machine.StringAt(metadata, "name"),
		Version: machine.StringAt(status, version), Phase: machine.StringAt(status, "phase"),
	}
}

func kubeVirt(object map[string]any) installation.KubeVirt {
	configuration := machine.MapAt(object, "spec", "configuration")
	developer := machine.MapAt(configuration, "developerConfiguration")
	k := installation.KubeVirt{
		Product: product(object, "observedKubeVirtVersion"), Target: machine.StringAt(machine.MapAt(object, "status"), "targetKubeVirtVersion"),
		Enabled: list(developer, "featureGates"), Disabled: list(developer, "disabledFeatureGates"),
	}
	if deploy, is := machine.MapAt(configuration, "virtTemplateDeployment")["enabled"].(bool); is {
		k.Deploy = &deploy
	}
	return k
}

func texts(object map[string]any, key string) map[string]string {
	made := map[string]string{}
	for name, value := range machine.MapAt(object, key) {
		made[name], _ = value.(string)
	}
	return made
}

func list(object map[string]any, key string) []string {
	var made []string
	items, _ := object[key].([]any)
	for _, item := range items {
		text, _ := item.(string)
		made = append(made, text)
	}
	return made
}
