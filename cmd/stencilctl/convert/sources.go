package convert

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/convert/inline"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const templateKind = "VirtualMachineTemplate"

var dataSources = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datasources"}

// runSources is run with --sources.
func (c *converting) runSources(ctx context.Context, names []string) error {
	switch {
	case c.inCluster && len(c.files) > 0:
		return cli.Usage(errors.New("templates are either stored (--stored) or in files (-f), not both"))
	case !c.inCluster && len(names) > 0:
		return cli.Usage(errors.New("with --sources, templates of the cluster need --stored"))
	case !c.inCluster && len(c.files) == 0:
		return cli.Usage(errors.New("what to convert must be given: -f FILE, or --stored"))
	case c.inCluster:
		return c.sourcesInCluster(ctx, names)
	}
	return c.sourcesInFiles()
}

// sourcesInFiles prints all objects of the files, with converted templates and their DataSources.
func (c *converting) sourcesInFiles() error {
	reader := &source.Reader{In: c.streams.In}
	objects, err := reader.Objects(c.files)
	if err != nil {
		return err
	}
	var claims, all []map[string]any
	given, templates := map[inline.Claim]map[string]any{}, 0
	for i := range objects {
		if o := &objects[i]; o.Kind == inline.Kind {
			given[inline.Claim{Namespace: o.Namespace(), Name: o.Name()}] = o.Content
		}
	}
	var conflicts []string
	for i := range objects {
		o := &objects[i]
		all = append(all, o.Content)
		if o.Kind != templateKind {
			continue
		}
		templates++
		made := inline.Convert(o.Content)
		c.note(o.File+": "+o.String(), made)
		for _, claim := range made.Claims {
			switch existing := given[claim]; {
			case existing == nil:
				given[claim] = claim.DataSource()
				claims = append(claims, given[claim])
			case claim.Conflict(existing) != "":
				conflicts = append(conflicts, claim.Conflict(existing))
			}
		}
	}
	switch {
	case templates == 0:
		return cli.Usage(errors.New("there is no VirtualMachineTemplate to convert"))
	case len(conflicts) > 0:
		return cli.Usage(errors.New(strings.Join(conflicts, "\n")))
	}
	return c.printObjects(append(claims, all...))
}

func (c *converting) note(from string, made inline.Result) {
	what := "nothing to convert"
	if len(made.Disks) > 0 {
		what = "converted " + strings.Join(made.Disks, ", ")
	}
	fmt.Fprintf(c.streams.Err, "%s: %s\n", from, what)
	for _, each := range made.Left {
		fmt.Fprintf(c.streams.Err, "  %s %s\n", c.streams.Paint(cli.Yellow, "left"), each)
	}
}

func (c *converting) printObjects(all []map[string]any) error {
	if c.format.Is(cli.JSON) && len(all) != 1 {
		return c.format.Write(c.streams.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": all})
	}
	for i, each := range all {
		if c.format.Is(cli.Name) {
			group, _, _ := strings.Cut(machine.StringAt(each, "apiVersion"), "/")
			fmt.Fprintf(c.streams.Out, "%s.%s/%s\n", strings.ToLower(machine.StringAt(each, "kind")), group, machine.StringAt(machine.MapAt(each, "metadata"), "name"))
			continue
		}
		if i > 0 {
			fmt.Fprintln(c.streams.Out, "---")
		}
		if err := c.format.Write(c.streams.Out, each); err != nil {
			return err
		}
	}
	return nil
}

// plan is what is written to the cluster: DataSources first, then templates.
type plan struct {
	sources   []inline.Claim
	templates []map[string]any
}

// sourcesInCluster converts stored templates. It writes nothing unless all objects can be written.
func (c *converting) sourcesInCluster(ctx context.Context, names []string) error {
	client, err := c.cluster.Client(c.streams.Err)
	if err != nil {
		return err
	}
	todo, err := c.plan(ctx, client, names)
	if err != nil {
		return err
	}
	if c.dryRun.Client() {
		return c.write(ctx, todo, nil)
	}
	// Admission evaluates everything before anything is stored.
	if err := c.write(ctx, todo, &writer{client: client, how: cluster.Written{DryRun: true}, silent: !c.dryRun.Server()}); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if c.dryRun.Server() {
		return nil
	}
	return c.write(ctx, todo, &writer{client: client})
}

// plan reads the templates and the DataSources of their claims.
func (c *converting) plan(ctx context.Context, client *cluster.Client, names []string) (plan, error) {
	var todo plan
	var conflicts []string
	seen := map[inline.Claim]bool{}
	add := func(template map[string]any) error {
		metadata := machine.MapAt(template, "metadata")
		made := inline.Convert(template)
		c.note("template "+machine.StringAt(metadata, "namespace")+"/"+machine.StringAt(metadata, "name"), made)
		if len(made.Disks) == 0 {
			return nil
		}
		template["apiVersion"], template["kind"] = v1beta1.GroupVersion.String(), templateKind
		todo.templates = append(todo.templates, template)
		for _, claim := range made.Claims {
			if seen[claim] {
				continue
			}
			seen[claim] = true
			existing, err := client.Get(ctx, dataSources, claim.Namespace, claim.Name)
			switch {
			case err != nil:
				return cluster.Failed("reading DataSource "+claim.String(), err)
			case existing == nil:
				todo.sources = append(todo.sources, claim)
			case claim.Conflict(existing) != "":
				conflicts = append(conflicts, claim.Conflict(existing))
			}
		}
		return nil
	}
	err := c.templates(ctx, client, names, add)
	if err == nil && len(conflicts) > 0 {
		err = cli.Cluster(fmt.Errorf("nothing was changed: %s", strings.Join(conflicts, "\n")))
	}
	return todo, err
}

// templates visits the templates of these names, or all of the namespace.
func (c *converting) templates(ctx context.Context, client *cluster.Client, names []string, visit func(map[string]any) error) error {
	if len(names) == 0 {
		return client.List(ctx, cluster.VirtualMachineTemplate, "", visit)
	}
	for _, name := range names {
		at, err := c.cluster.Existing("template", name, client.Namespace)
		if err != nil {
			return err
		}
		object, err := client.Get(ctx, cluster.VirtualMachineTemplate, at.Namespace, at.Name)
		switch {
		case err != nil:
			return cluster.Failed("reading template "+at.String(), err)
		case object == nil:
			return client.Absent(ctx, at.Namespace, fmt.Errorf("there is no template %s in namespace %s", at.Name, at.Namespace))
		}
		if err := visit(object); err != nil {
			return err
		}
	}
	return nil
}

// writer writes objects; silent prints nothing.
type writer struct {
	client *cluster.Client
	how    cluster.Written
	silent bool
}

// update writes a converted template. A template whose spec was changed since it was read is not written.
func (w *writer) update(ctx context.Context, template map[string]any) error {
	metadata := machine.MapAt(template, "metadata")
	namespace, name := machine.StringAt(metadata, "namespace"), machine.StringAt(metadata, "name")
	for attempt := 1; ; attempt++ {
		_, err := w.client.Update(ctx, cluster.VirtualMachineTemplate, namespace, name, template, w.how)
		if err == nil {
			return nil
		}
		failed := cluster.Failed("updating template "+namespace+"/"+name, err)
		if !apierrors.IsConflict(err) || attempt == cluster.MaxConflicts {
			return failed
		}
		fresh, err := w.client.Get(ctx, cluster.VirtualMachineTemplate, namespace, name)
		switch {
		case err != nil:
			return cluster.Failed("reading template "+namespace+"/"+name, err)
		case fresh == nil, machine.MapAt(fresh, "metadata")["generation"] != metadata["generation"]:
			return failed
		}
		// Only status or metadata changed: these stay as they are now.
		fresh["apiVersion"], fresh["kind"], fresh["spec"] = template["apiVersion"], template["kind"], template["spec"]
		template = fresh
	}
}

// write writes a plan, and prints it. A nil writer only prints it. A run that is interrupted leaves complete templates, and a second one converts
// the others.
func (c *converting) write(ctx context.Context, todo plan, with *writer) error {
	report := func(format string, arguments ...any) {
		if with == nil || !with.silent {
			fmt.Fprintf(c.streams.Out, format+c.dryRun.Suffix()+"\n", arguments...)
		}
	}
	for _, claim := range todo.sources {
		if with != nil {
			if _, err := with.client.Create(ctx, dataSources, claim.Namespace, claim.DataSource(), with.how); err != nil {
				return cluster.Failed("creating DataSource "+claim.String(), err)
			}
		}
		report("DataSource %s created", claim)
	}
	for _, template := range todo.templates {
		metadata := machine.MapAt(template, "metadata")
		namespace, name := machine.StringAt(metadata, "namespace"), machine.StringAt(metadata, "name")
		if with != nil {
			if err := with.update(ctx, template); err != nil {
				return err
			}
		}
		report("template %s/%s converted", namespace, name)
	}
	return nil
}
