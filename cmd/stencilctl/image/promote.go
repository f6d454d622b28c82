package image

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// promoting is the command image promote.
type promoting struct{ target }

func newPromote(streams cli.Streams) *cobra.Command {
	p := promoting{target{streams: streams}}
	command := &cobra.Command{
		Use:   "promote [NAMESPACE/]NAME CHANNEL [DIGEST|TAG]",
		Short: "Let a channel that is promoted manually stand for an image",
		Long: `Let a channel that is promoted manually (promote.manual) stand for an image of image history: by default for the one that the
DataSource of the golden image stands for.`,
		Example: `  stencilctl image promote fedora stable -n golden
  stencilctl image promote fedora stable 41 -n golden`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(command *cobra.Command, arguments []string) error { return p.run(command.Context(), arguments) },
	}
	p.register(command, offerManual, offerImages)
	return command
}

func (p *promoting) run(ctx context.Context, arguments []string) error {
	image, err := p.open(ctx, arguments[0])
	if err != nil {
		return err
	}
	images := imported(image)
	channel, err := p.channel(image, arguments[1])
	if err != nil {
		return err
	}
	if !manual(channel) {
		return cli.Usage(fmt.Errorf("channel %s of GoldenImage %s is not promoted manually: its spec has no promote.manual", channel.Name, p.at))
	}
	var digest string
	if stands := standing(image, ""); len(arguments) > 2 {
		chosen, err := p.choose(images, arguments[2])
		if err != nil {
			return err
		}
		digest = chosen.Digest
	} else if len(stands) > 0 {
		digest = stands[0]
	} else {
		return noImage(p.at, image)
	}
	if _, err := p.annotate(ctx, v1alpha1.AnnotationPromotePrefix+channel.Name, digest); err != nil {
		return err
	}
	p.did("channel %s promoted to %s", channel.Name, titled(images, digest))
	return nil
}
