package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/preflight"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// migration is the command install migrate-storage.
type migration struct {
	streams cli.Streams
	cluster cluster.Flags
	client  *cluster.Client
	dryRun  cli.DryRun
}

func newMigrateStorage(streams cli.Streams) *cobra.Command {
	m := migration{streams: streams}
	command := &cobra.Command{
		Use:   "migrate-storage",
		Short: "Store all templates and their requests in the current version of their API",
		Long: `Store all templates and their requests in the current version of their API, so that a later release can drop older ones.

The API server converts what it reads, and writes the storage version of the definition. Objects that were written before keep the version of that time, and
status.storedVersions of the definition has it, until each was written again. This command writes each object without a change, page by page, and then takes the older versions
from status.storedVersions. It does so only if nothing has changed the definition in between. Objects that are stored in the current version are not written.

An interrupted command loses nothing: run it again. With several API servers, run it when all of them have seen the definition, a minute after an upgrade.

It takes permission to get customresourcedefinitions, to patch customresourcedefinitions/status, and to list, get and patch virtualmachinetemplates and
virtualmachinetemplaterequests in all namespaces.`,
		Example: `  stencilctl install migrate-storage --dry-run
  stencilctl install migrate-storage`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, _ []string) error { return m.run(command.Context()) },
	}
	m.dryRun.RegisterBare(command)
	m.cluster.RegisterUnnamespaced(command.Flags())
	return command
}

func (m *migration) run(ctx context.Context) (err error) {
	if m.client, err = m.cluster.Client(m.streams.Err); err != nil {
		return err
	}
	m.client.Namespace = ""
	found := false
	for _, name := range installation.Definitions {
		exists, err := m.migrate(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found = found || exists
	}
	if !found {
		return cli.Cluster(errors.New("the cluster has no definitions of templates"))
	}
	return nil
}

// stored is what a definition has about the versions of its objects.
type stored struct {
	resource schema.GroupVersionResource
	// version of the definition's own object, a precondition of its change.
	version string
	// older are the versions in which objects may be stored, besides the current one.
	older []string
}

// storedBy reads a definition.
func storedBy(definition map[string]any) (stored, error) {
	spec := machine.MapAt(definition, "spec")
	s := stored{version: machine.StringAt(machine.MapAt(definition, "metadata"), "resourceVersion")}
	s.resource = schema.GroupVersionResource{Group: machine.StringAt(spec, "group"), Resource: machine.StringAt(machine.MapAt(spec, "names"), "plural")}
	versions, _ := spec["versions"].([]any)
	for _, each := range versions {
		if version, _ := each.(map[string]any); version["storage"] == true {
			s.resource.Version = machine.StringAt(version, "name")
		}
	}
	if s.resource.Version == "" || s.version == "" {
		return s, errors.New("it has no storage version or no resourceVersion")
	}
	all, _ := machine.MapAt(definition, "status")["storedVersions"].([]any)
	for _, each := range all {
		if each != s.resource.Version {
			s.older = append(s.older, fmt.Sprint(each))
		}
	}
	return s, nil
}

// migrate migrates the objects of a definition, and reports whether it exists. If the definition changes meanwhile, it begins again.
func (m *migration) migrate(ctx context.Context, name string) (exists bool, err error) {
	for range cluster.MaxConflicts {
		definition, err := m.client.Get(ctx, preflight.Definitions, "", name)
		if err != nil {
			return false, cluster.Failed("reading the definition", err)
		}
		if definition == nil {
			fmt.Fprintf(m.streams.Out, "none    %s\n", name)
			return false, nil
		}
		s, err := storedBy(definition)
		if err != nil {
			return true, cli.Cluster(err)
		}
		if len(s.older) == 0 {
			fmt.Fprintf(m.streams.Out, "done    %s: all objects are stored in %s\n", name, s.resource.Version)
			return true, nil
		}
		count, err := m.rewrite(ctx, s.resource)
		if err != nil {
			return true, err
		}
		what := fmt.Sprintf("%s from %s to %s", cli.Count(count, "object", "objects"), strings.Join(s.older, " and "), s.resource.Version)
		if m.dryRun.Requested() {
			fmt.Fprintf(m.streams.Out, "to do   %s: %s\n", name, what)
			return true, nil
		}
		patch := map[string]any{"metadata": map[string]any{"resourceVersion": s.version}, "status": map[string]any{"storedVersions": []string{s.resource.Version}}}
		_, err = m.client.Patch(ctx, preflight.Definitions, "", name+"/status", patch, cluster.Written{})
		switch {
		case err == nil:
			fmt.Fprintf(m.streams.Out, "did     %s: %s\n", name, what)
			return true, nil
		case !apierrors.IsConflict(err):
			return true, cluster.Failed("changing status.storedVersions", err)
		}
		fmt.Fprintf(m.streams.Err, "%s has changed meanwhile: beginning again\n", name)
	}
	return true, cli.Cluster(fmt.Errorf("the definition has changed %d times meanwhile. Nothing is lost: run the command again", cluster.MaxConflicts))
}

// rewrite writes all objects without a change, and returns how many there are. A dry run counts them.
func (m *migration) rewrite(ctx context.Context, resource schema.GroupVersionResource) (count int, err error) {
	err = m.client.List(ctx, resource, "", func(object map[string]any) error {
		if count++; count%cluster.PageSize == 0 {
			fmt.Fprintf(m.streams.Err, "%d %s\n", count, resource.Resource)
		}
		if m.dryRun.Requested() {
			return nil
		}
		metadata := machine.MapAt(object, "metadata")
		return m.touch(ctx, resource, machine.StringAt(metadata, "namespace"), machine.StringAt(metadata, "name"), machine.StringAt(metadata, "resourceVersion"))
	})
	return count, err
}

// touch writes an object without a change. One that is deleted meanwhile needs none.
func (m *migration) touch(ctx context.Context, resource schema.GroupVersionResource, namespace, name, version string) error {
	what := resource.Resource + " " + namespace + "/" + name
	for range cluster.MaxConflicts {
		_, err := m.client.Patch(ctx, resource, namespace, name, map[string]any{"metadata": map[string]any{"resourceVersion": version}}, cluster.Written{})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return cluster.Failed("writing "+what, err)
		}
		object, err := m.client.Get(ctx, resource, namespace, name)
		if err != nil {
			return cluster.Failed("reading "+what, err)
		}
		if object == nil {
			return nil
		}
		version = machine.StringAt(machine.MapAt(object, "metadata"), "resourceVersion")
	}
	return cli.Cluster(fmt.Errorf("writing %s: it has changed %d times meanwhile. Nothing is lost: run the command again", what, cluster.MaxConflicts))
}
