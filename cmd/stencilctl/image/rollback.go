package image

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/goldenimage"
)

// rollingBack is the command image rollback.
type rollingBack struct {
	target

	following   following
	fromChannel string
	to          string
}

func newRollback(streams cli.Streams) *cobra.Command {
	r := rollingBack{target: target{streams: streams}}
	command := &cobra.Command{
		Use:   "rollback [NAMESPACE/]NAME",
		Short: "Let a golden image, or one of its channels, stand for the image before",
		Long: `Let a golden image, or one of its channels, stand for the image that was imported before the current one: pin it to that one. A
channel that is promoted manually is not pinned: the image is promoted to it.`,
		Example: `  stencilctl image rollback fedora -n golden
  stencilctl image rollback fedora --channel stable --to 41 -n golden`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return r.run(command, names[0]) },
	}
	command.Flags().StringVar(&r.fromChannel, "channel", "", ofChannel)
	command.Flags().StringVar(&r.to, "to", "", "digest, or the beginning of it, or tag of the image (default the one before)")
	r.following.register(command.Flags())
	r.register(command)
	r.completeFlag(command, "channel", channelNames)
	r.completeFlag(command, "to", offerImages)
	return command
}

func (r *rollingBack) run(command *cobra.Command, name string) error {
	ctx := command.Context()
	if err := r.following.check(); err != nil {
		return err
	}
	image, err := r.open(ctx, name)
	if err != nil {
		return err
	}
	images := imported(image)
	promoted := false
	if r.fromChannel != "" {
		channel, err := r.channel(image, r.fromChannel)
		if err != nil {
			return err
		}
		promoted = manual(channel)
	}
	older, err := r.before(image, images)
	if err != nil {
		return err
	}
	var written *v1alpha1.GoldenImage
	if promoted {
		written, err = r.annotate(ctx, v1alpha1.AnnotationPromotePrefix+r.fromChannel, older.Digest)
	} else {
		written, err = r.write(ctx, image, r.fromChannel, older.Digest)
	}
	if err != nil {
		return err
	}
	if r.following.wait {
		if _, err := r.follow(ctx, r.following, written, r.standsFor(older.Digest)); err != nil {
			return err
		}
	}
	r.did("%srolled back to %s", about(r.fromChannel), titled(images, older.Digest))
	if !promoted {
		r.goOn(command, image, r.fromChannel)
	}
	return nil
}

// before returns the image to go back to.
func (r *rollingBack) before(image *v1alpha1.GoldenImage, images []v1alpha1.ImportedImage) (v1alpha1.ImportedImage, error) {
	if r.to != "" {
		return r.choose(images, r.to)
	}
	stands := standing(image, r.fromChannel)
	if len(stands) == 0 {
		return v1alpha1.ImportedImage{}, noImage(r.at, image)
	}
	passed := false
	for _, one := range images {
		is := slices.Contains(stands, one.Digest)
		if passed && !is {
			return one, nil
		}
		passed = passed || is
	}
	return v1alpha1.ImportedImage{}, cli.Usage(fmt.Errorf("GoldenImage %s has no image before %s; %s", r.at, titled(images, stands[0]), listed("there are", images)))
}

// standsFor is the result of a change after which the DataSource, or that of the channel, stands for an image.
func (r *rollingBack) standsFor(digest string) result {
	return func(image *v1alpha1.GoldenImage) (bool, string) {
		condition := upToDate(image)
		switch {
		case condition == nil:
			return false, ""
		case slices.Contains(standing(image, r.fromChannel), digest):
			return true, ""
		}
		switch condition.Reason {
		case goldenimage.ReasonNotEnabled, goldenimage.ReasonCDINotServed, goldenimage.ReasonConflict, goldenimage.ReasonProvided, goldenimage.ReasonInvalid, goldenimage.ReasonDigest:
			return true, condition.Message
		case goldenimage.ReasonImportFailed, goldenimage.ReasonChannel:
			return false, condition.Message
		}
		return false, ""
	}
}
