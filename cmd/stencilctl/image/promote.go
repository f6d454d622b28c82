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
	images, err := p.imported(image)
	if err != nil {
		return err
	}
	channel, err := p.channel(image, arguments[1])
	if err != nil {
		return err
	}
	if !manual(channel) {
		return cli.Usage(fmt.Errorf("channel %s of GoldenImage %s is not promoted manually: its spec has no promote.manual", channel.Name, p.at))
	}
	digest := standing(image, "")
	switch {
	case len(arguments) > 2:
		chosen, err := p.choose(images, arguments[2])
		if err != nil {
			return err
		}
		digest = chosen.Digest
	case digest == "":
		return noImage(p.at)
	}
	if _, err := p.annotate(ctx, v1alpha1.AnnotationPromotePrefix+channel.Name, digest); err != nil {
		return err
	}
	p.did("channel %s promoted to %s", channel.Name, titled(images, digest))
	return nil
}

// standing returns the digest of the image that the DataSource stands for, or that of a channel; empty if there is none.
func standing(image *v1alpha1.GoldenImage, channel string) string {
	if channel == "" && len(image.Status.Architectures) > 0 && image.Status.Architectures[0].Current != nil {
		return image.Status.Architectures[0].Current.Digest
	}
	for _, one := range image.Status.Channels {
		if one.Name == channel {
			return one.Digest
		}
	}
	return ""
}
