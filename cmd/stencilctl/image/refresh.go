package image

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// refreshing is the command image refresh.
type refreshing struct {
	target

	following following
}

func newRefresh(streams cli.Streams) *cobra.Command {
	r := refreshing{target: target{streams: streams}}
	command := &cobra.Command{
		Use:   "refresh [NAMESPACE/]NAME",
		Short: "Check the source of a golden image now",
		Long: `Check the source of a golden image now, and import a newer image.

Changes of the conditions Importing and UpToDate are printed until the DataSource stands for the newest image. The exit code is
1 if the check or the import fails, and if it is not finished when the timeout is over; it goes on then.`,
		Example: `  stencilctl image refresh fedora -n golden --timeout 10m`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, names []string) error { return r.run(command.Context(), names[0]) },
	}
	r.following.register(command.Flags())
	r.register(command)
	return command
}

func (r *refreshing) run(ctx context.Context, name string) error {
	if err := r.following.check(); err != nil {
		return err
	}
	image, err := r.open(ctx, name)
	if err != nil {
		return err
	}
	if image.Spec.Suspended {
		return cli.Usage(fmt.Errorf("GoldenImage %s is not checked: it has spec.suspended", r.at))
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	image, err = r.annotate(ctx, v1alpha1.AnnotationRefresh, now)
	if err != nil {
		return err
	}
	if !r.following.wait {
		r.did("will be checked")
		return nil
	}
	image, err = r.follow(ctx, r.following, image, latest(now))
	if err != nil {
		return err
	}
	r.did("up to date: %s", upToDate(image).Message)
	return nil
}
