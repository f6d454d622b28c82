package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// pinning are the commands image pin and image unpin.
type pinning struct {
	target

	toChannel string
	after     time.Duration
}

const ofChannel = "the channel instead of the image"

func newPin(streams cli.Streams) *cobra.Command {
	p := pinning{target: target{streams: streams}}
	command := &cobra.Command{
		Use:   "pin [NAMESPACE/]NAME DIGEST|TAG",
		Short: "Pin a golden image, or one of its channels, to an image",
		Long: `Pin a golden image, or one of its channels, to an image: it stands for that one until it is unpinned.

The image is one of image history: its digest, the beginning of it (6 digits or more), or its tag. A whole digest, such
as sha256:…, may also be that of an image that was not imported yet, unless it is for a channel.`,
		Example: `  stencilctl image pin fedora 41 -n golden
  stencilctl image pin fedora sha256:1f2e3d --channel stable -n golden`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.pin(command, arguments[0], arguments[1])
		},
	}
	command.Flags().StringVar(&p.toChannel, "channel", "", ofChannel)
	p.register(command, offerImages)
	p.completeFlag(command, "channel", channelNames)
	return command
}

func newUnpin(streams cli.Streams) *cobra.Command {
	p := pinning{target: target{streams: streams}}
	command := &cobra.Command{
		Use:   "unpin [NAMESPACE/]NAME",
		Short: "Let a golden image, or one of its channels, follow newer images again",
		Example: `  stencilctl image unpin fedora -n golden
  stencilctl image unpin fedora --channel stable --after 24h -n golden`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return p.unpin(command.Context(), names[0]) },
	}
	command.Flags().StringVar(&p.toChannel, "channel", "", ofChannel)
	command.Flags().DurationVar(&p.after, "after", 0, "how long an image must have been ready before the channel takes it (default it takes it at once)")
	p.register(command)
	p.completeFlag(command, "channel", channelNames)
	return command
}

func (p *pinning) pin(command *cobra.Command, name, text string) error {
	ctx := command.Context()
	image, err := p.open(ctx, name)
	if err != nil {
		return err
	}
	images := imported(image)
	if p.toChannel != "" {
		channel, err := p.channel(image, p.toChannel)
		if err != nil {
			return err
		}
		if manual(channel) {
			return cli.Usage(fmt.Errorf("channel %s of GoldenImage %s stands for what is promoted to it: use \"%s promote %s %s DIGEST\"", channel.Name, p.at, command.Parent().CommandPath(), p.at, channel.Name))
		}
	}
	digest := text
	if p.toChannel != "" || !wholeDigest.MatchString(text) {
		chosen, err := p.choose(images, text)
		if err != nil {
			return err
		}
		digest = chosen.Digest
	}
	if _, err := p.write(ctx, image, p.toChannel, digest); err != nil {
		return err
	}
	p.did("%spinned to %s", about(p.toChannel), titled(images, digest))
	p.goOn(command, image, p.toChannel)
	return nil
}

func (p *pinning) unpin(ctx context.Context, name string) error {
	switch {
	case p.after < 0:
		return cli.Usage(errors.New("--after must be positive"))
	case p.after > 0 && p.toChannel == "":
		return cli.Usage(errors.New("--after is about a channel: name it with --channel"))
	}
	image, err := p.open(ctx, name)
	if err != nil {
		return err
	}
	pinned := image.Spec.Digest
	if p.toChannel != "" {
		channel, err := p.channel(image, p.toChannel)
		if err != nil {
			return err
		}
		pinned = channel.Digest
		if p.after > 0 && pinned != "" {
			channel.Promote = &v1alpha1.GoldenImagePromotion{After: &metav1.Duration{Duration: p.after}}
		}
	}
	if pinned == "" {
		p.did("%sis not pinned", about(p.toChannel))
		return nil
	}
	if _, err := p.write(ctx, image, p.toChannel, ""); err != nil {
		return err
	}
	p.did("%sunpinned", about(p.toChannel))
	return nil
}

// about returns the channel that a message is about, and a space.
func about(channel string) string {
	if channel == "" {
		return ""
	}
	return "channel " + channel + " "
}

// write pins the image or a channel, or unpins it if the digest is empty. A channel that is pinned follows nothing, so that it has no promotion.
func (t *target) write(ctx context.Context, image *v1alpha1.GoldenImage, channel, digest string) (*v1alpha1.GoldenImage, error) {
	if channel == "" {
		var value any
		if digest != "" {
			value = digest
		}
		return t.patch(ctx, map[string]any{"spec": map[string]any{"digest": value}})
	}
	changed := image.DeepCopy().Spec.Channels
	for i := range changed {
		if changed[i].Name != channel {
			continue
		}
		changed[i].Digest = digest
		if digest != "" {
			changed[i].Promote = nil
		}
	}
	// The list is replaced, which must not revert what another user has written since it was read.
	return t.patch(ctx, map[string]any{
		"metadata": map[string]any{"resourceVersion": image.ResourceVersion},
		"spec":     map[string]any{"channels": changed},
	})
}

// goOn prints how a pinned image, or a channel of it, follows newer images again.
func (t *target) goOn(command *cobra.Command, image *v1alpha1.GoldenImage, channel string) {
	line := command.Parent().CommandPath() + " unpin " + t.at.String()
	if channel != "" {
		line += " --channel " + channel
		for _, one := range image.Spec.Channels {
			if one.Name == channel && one.Promote != nil && one.Promote.After != nil {
				line += " --after " + one.Promote.After.Duration.String()
			}
		}
	}
	fmt.Fprintf(t.streams.Err, "it follows no newer image until you unpin it: %s\n", line)
}
