package image

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

var goldenImages = v1alpha1.GroupVersion.WithResource("goldenimages")

// completionTime bounds the time in which an image is read for a completion.
const completionTime = 3 * time.Second

// NewCommand returns the command image with its subcommands.
func NewCommand(streams cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "image",
		Short: "List, pin and refresh golden images",
		Long: `List, pin and refresh golden images: GoldenImages, their DataSources, and their channels.

They take permission to get and list goldenimages, and to patch those that they change; add takes permission to create them.`,
	}
	command.AddCommand(
		newList(streams), newHistory(streams), newPin(streams), newUnpin(streams), newRollback(streams),
		newRefresh(streams), newPromote(streams), newAdd(streams),
	)
	return command
}

// target is the GoldenImage that a command is about.
type target struct {
	streams cli.Streams
	cluster cluster.Flags
	client  *cluster.Client
	at      machine.Reference
}

// register adds the flags of the cluster. Arguments are completed: the first one is the name of a GoldenImage, and further ones are among the
// values that functions offer for it.
func (t *target) register(command *cobra.Command, offer ...func(*v1alpha1.GoldenImage) []cobra.Completion) {
	t.cluster.Register(command.Flags())
	t.cluster.CompleteNamespaces(command)
	names := t.cluster.CompleteNames(goldenImages, false)
	command.ValidArgsFunction = func(command *cobra.Command, arguments []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if n := len(arguments); n > 0 && n <= len(offer) {
			return t.complete(offer[n-1])(command, arguments, begun)
		}
		return names(command, arguments, begun)
	}
}

// completeFlag completes a flag with values that a function offers for the GoldenImage of the first argument.
func (t *target) completeFlag(command *cobra.Command, flag string, offer func(*v1alpha1.GoldenImage) []cobra.Completion) {
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc(flag, t.complete(offer))
}

// complete offers nothing on any error: an error would be written into the user's command line.
func (t *target) complete(offer func(*v1alpha1.GoldenImage) []cobra.Completion) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(arguments) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		t.streams.Err = io.Discard
		ctx, cancel := context.WithTimeout(command.Context(), completionTime)
		defer cancel()
		if err := t.connect(arguments[0]); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		image, err := t.get(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(image), cobra.ShellCompDirectiveNoFileComp
	}
}

// connect makes a client, and reads the name of the GoldenImage.
func (t *target) connect(name string) (err error) {
	if t.client, err = t.cluster.Client(t.streams.Err); err != nil {
		return err
	}
	return t.parse(name, t.client.Namespace)
}

// parse reads the name of the GoldenImage: NAME, in a namespace, or NAMESPACE/NAME.
func (t *target) parse(name, namespace string) (err error) {
	t.at, err = t.cluster.Existing("GoldenImage", name, namespace)
	return err
}

// open is connect and get.
func (t *target) open(ctx context.Context, name string) (*v1alpha1.GoldenImage, error) {
	if err := t.connect(name); err != nil {
		return nil, err
	}
	return t.get(ctx)
}

func (t *target) get(ctx context.Context) (*v1alpha1.GoldenImage, error) {
	object, err := t.client.Get(ctx, goldenImages, t.at.Namespace, t.at.Name)
	switch {
	case err != nil:
		return nil, cluster.Failed("reading GoldenImage "+t.at.String(), err)
	case object == nil:
		return nil, t.client.Absent(ctx, t.at.Namespace, fmt.Errorf("there is no GoldenImage %s in namespace %s", t.at.Name, t.at.Namespace))
	}
	return decode(object)
}

// patch writes fields of the GoldenImage, and returns what was stored.
func (t *target) patch(ctx context.Context, fields map[string]any) (*v1alpha1.GoldenImage, error) {
	object, err := t.client.Patch(ctx, goldenImages, t.at.Namespace, t.at.Name, fields, cluster.Written{})
	if err != nil {
		return nil, cluster.Failed("changing GoldenImage "+t.at.String(), err)
	}
	return decode(object)
}

// annotate writes an annotation of the GoldenImage, and returns what was stored.
func (t *target) annotate(ctx context.Context, key, value string) (*v1alpha1.GoldenImage, error) {
	return t.patch(ctx, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

// did prints what was done with the GoldenImage.
func (t *target) did(what string, arguments ...any) {
	fmt.Fprintf(t.streams.Out, "%s %s\n", qualified(t.at.Name), fmt.Sprintf(what, arguments...))
}

// resourceName is the resource in messages.
const resourceName = "goldenimage." + v1alpha1.GroupName

func qualified(name string) string { return resourceName + "/" + name }

func decode(object map[string]any) (*v1alpha1.GoldenImage, error) {
	image := &v1alpha1.GoldenImage{}
	if err := templates.Decode(object, image); err != nil {
		return nil, cli.Cluster(fmt.Errorf("reading a GoldenImage: %w", err))
	}
	return image, nil
}
