// Package capture holds the command capture: it requests a template of a VirtualMachine, and
// reports the progress of the request.
package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const defaultTimeout = 30 * time.Minute

// capturing is the command capture.
type capturing struct {
	streams cli.Streams
	cluster cluster.Flags
	name    string
	labels  map[string]string
	ttl     time.Duration
	limit   time.Duration
	// chosen are the values of the options, by field of the request.
	chosen       map[string]*string
	secretize    bool
	keepLayout   bool
	parameterize []string
	include      []string
	wait         bool
	following    cli.Following
	dryRun       cli.DryRun
	format       *cli.Format
}

// NewCommand returns the command.
func NewCommand(streams cli.Streams) *cobra.Command {
	c := capturing{streams: streams, format: cli.NewFormat(cli.Table, cli.YAML, cli.JSON, cli.Name)}
	command := &cobra.Command{
		Use:   "capture [NAMESPACE/]VM",
		Short: "Create a template from a VirtualMachine",
		Long: `Create a template from a VirtualMachine: create a VirtualMachineTemplateRequest in the namespace of the new template, which is that of -n, or of
the context. NAMESPACE/VM is a VirtualMachine of another one.

With --wait every change of its conditions is printed until it is ready, has failed, or the timeout is over; the request goes
on when this command ends. It takes the permission to create virtualmachinetemplaterequests, and, when the VirtualMachine is
in another namespace, virtualmachinetemplaterequests/source there. With --include it reads the Services that select the
VirtualMachine, or the Secrets that it refers to, and puts them into the request; it takes the permissions to get the
VirtualMachine, to list Services and to get these Secrets.`,
		Example: `  stencilctl capture web-1 -n shop --name web --wait
  stencilctl capture web-1 -n shop --instancetype-mode Keep --secrets Parameterize --parameterize INSTANCETYPE,SSH_KEY
  stencilctl capture shop/web-1 -n golden --name web --labels os=fedora`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return c.run(command, names[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&c.name, "name", "", "name of the template (default that of the request)")
	flags.StringToStringVar(&c.labels, "labels", nil, "labels of the template: KEY=VALUE,...")
	flags.DurationVar(&c.ttl, "ttl", 0, "how long after its success the request is deleted (default never)")
	c.options(flags)
	cli.Alias(command, "instancetype", "instancetype-mode")
	flags.BoolVar(&c.wait, "wait", false, "wait until the template is ready")
	c.following.Register(flags, defaultTimeout)
	c.dryRun.Register(command)
	c.cluster.Register(flags)
	c.format.Register(command, "output", "o")
	command.ValidArgsFunction = c.cluster.CompleteNames(cluster.VirtualMachines, false)
	c.cluster.CompleteNamespaces(command)
	return command
}

func (c *capturing) run(command *cobra.Command, name string) error {
	ctx := command.Context()
	switch {
	case c.ttl < 0 || c.limit < 0:
		return cli.Usage(errors.New("durations must be positive"))
	case c.wait && (c.dryRun.Client() || c.dryRun.Server()):
		return cli.Usage(errors.New("--wait: a dry run makes nothing to wait for"))
	}
	if err := errors.Join(c.following.Check(), c.check()); err != nil {
		return cli.Usage(err)
	}
	client, err := c.cluster.Client(c.streams.Err)
	if err != nil {
		return err
	}
	vm, errs := machine.ParseReference(name, client.Namespace)
	if len(errs) > 0 {
		return cli.Usage(fmt.Errorf("%q is no name of a VirtualMachine, want NAME or NAMESPACE/NAME", name))
	}
	object, err := c.source(ctx, client, vm)
	if err != nil {
		return err
	}
	objects, err := c.objects(ctx, client, vm, object)
	if err != nil {
		return err
	}
	request := c.request(vm, client.Namespace, objects, command.Flags().Changed("ttl"))
	if !c.dryRun.Client() {
		request, err = client.Create(ctx, cluster.TemplateRequests, client.Namespace, request, cluster.Written{DryRun: c.dryRun.Server()})
		if err != nil {
			return cluster.Failed(fmt.Sprintf("capturing VirtualMachine %s", vm), err)
		}
	}
	if !c.wait {
		return c.print(request, "created"+c.dryRun.Suffix())
	}
	made, err := c.follow(ctx, client, request)
	if err != nil {
		return err
	}
	return c.print(made, "ready")
}

// request returns the object to create.
func (c *capturing) request(vm machine.Reference, namespace string, objects []any, expires bool) map[string]any {
	spec := map[string]any{"virtualMachineRef": map[string]any{"namespace": vm.Namespace, "name": vm.Name}}
	if c.name != "" {
		spec["templateName"] = c.name
	}
	if len(c.labels) > 0 {
		spec["templateLabels"] = c.labels
	}
	for _, option := range options {
		if value := c.chosen[option.field]; *value != "" {
			spec[option.field] = *value
		}
	}
	if c.keepLayout {
		spec["keepLayout"] = true
	}
	if c.secretize {
		spec["secretize"] = true
	}
	if len(objects) > 0 {
		spec["objects"] = objects
	}
	if len(c.parameterize) > 0 {
		spec["parameterize"] = c.parameterize
	}
	if c.limit > 0 {
		spec["timeout"] = c.limit.String()
	}
	if expires {
		spec["ttlSecondsAfterFinished"] = int32(c.ttl / time.Second)
	}
	return map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": "VirtualMachineTemplateRequest",
		"metadata": map[string]any{"namespace": namespace, "generateName": vm.Name + "-"},
		"spec":     spec,
	}
}

// follow prints the conditions of a request as they change, until it is finished.
func (c *capturing) follow(ctx context.Context, client *cluster.Client, created map[string]any) (map[string]any, error) {
	metadata, _ := created["metadata"].(map[string]any)
	namespace, name := machine.StringAt(metadata, "namespace"), machine.StringAt(metadata, "name")
	fmt.Fprintf(c.streams.Err, "%s created\n", cli.Placed(requestResource, namespace, name))
	reported := cluster.Reported{}
	var state map[string]any
	err := c.following.Follow(ctx, c.streams, qualified(name), func() (done bool, err error) {
		object, err := client.Get(ctx, cluster.TemplateRequests, namespace, name)
		switch {
		case err != nil:
			return false, cluster.Failed("reading "+qualified(name), err)
		case object == nil:
			return false, cli.Cluster(fmt.Errorf("%s was deleted; with a ttl it may have been finished", qualified(name)))
		}
		state, err = c.report(object, reported)
		return state != nil, err
	})
	return state, err
}

// report prints the conditions that have changed. It returns the object when it is ready.
func (c *capturing) report(object map[string]any, reported cluster.Reported) (map[string]any, error) {
	var request v1beta1.VirtualMachineTemplateRequest
	if err := templates.Decode(object, &request); err != nil {
		return nil, cli.Cluster(fmt.Errorf("reading the request: %w", err))
	}
	ready, ended := false, false
	for _, condition := range request.Status.Conditions {
		if condition.Type == v1beta1.ConditionCompleted {
			continue // equals Ready
		}
		reported.Print(c.streams.Err, condition)
		ready = ready || condition.Type == v1beta1.ConditionReady && condition.Status == metav1.ConditionTrue
		ended = ended || condition.Type == v1beta1.ConditionProgressing && condition.Status == metav1.ConditionFalse
	}
	switch {
	case ready:
		return object, nil
	case ended:
		fmt.Fprintf(c.streams.Err, "%s has failed\n", qualified(request.Name))
		return nil, cli.ErrFindings
	default:
		return nil, nil
	}
}

// Resources in messages.
const (
	requestResource  = "virtualmachinetemplaterequest.template.kubevirt.io"
	templateResource = "virtualmachinetemplate.template.kubevirt.io"
)

func qualified(name string) string { return requestResource + "/" + name }

// print prints the request, or the template that it created.
func (c *capturing) print(object map[string]any, did string) error {
	var request v1beta1.VirtualMachineTemplateRequest
	if err := templates.Decode(object, &request); err != nil {
		return cli.Cluster(fmt.Errorf("reading the request: %w", err))
	}
	resource, shown := requestResource, request.Name
	if made := request.Status.TemplateRef; made != nil {
		resource, shown = templateResource, made.Name
	}
	switch {
	case c.format.Is(cli.Name):
		fmt.Fprintln(c.streams.Out, resource+"/"+cmp.Or(shown, request.GenerateName))
		return nil
	case c.format.Is(cli.Table):
		fmt.Fprintf(c.streams.Out, "%s %s\n", cli.Placed(resource, request.Namespace, cli.Named(shown, request.GenerateName)), did)
		return nil
	default:
		return c.format.Write(c.streams.Out, object)
	}
}
