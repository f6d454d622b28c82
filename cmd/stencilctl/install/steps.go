package install

import (
	"context"
	"fmt"
	"time"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// every is how often the cluster is read while a step waits.
const every = time.Second

// last is how long the last requests of a step may take.
const last = 30 * time.Second

// step is a part of handing the definitions over. Whether it is done is read from the cluster, so that a command that was interrupted goes on where it was.
type step struct {
	name string
	// missing returns what is not done yet, empty when nothing is.
	missing func(ctx context.Context) (string, error)
	// act does it. It is called again while something is missing, because virt-operator may undo it. nil: the step waits only.
	act func(ctx context.Context) error
}

// take takes steps, in order, each within a limit. A dry run only reads, and reports what each would do.
func take(ctx context.Context, streams cli.Streams, steps []step, dryRun bool, limit time.Duration) error {
	for _, s := range steps {
		missing, err := s.missing(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", s.name, err)
		case missing == "":
			fmt.Fprintf(streams.Out, "done    %s\n", s.name)
			continue
		case dryRun:
			fmt.Fprintf(streams.Out, "to do   %s: %s\n", s.name, missing)
			continue
		}
		if err := s.take(ctx, limit); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(streams.Out, "did     %s: %s\n", s.name, missing)
	}
	return nil
}

func (s step) take(ctx context.Context, limit time.Duration) error {
	// A request that is under way when the limit is reached may end: what is missing then is the message.
	ctx, cancel := context.WithTimeout(ctx, limit+last)
	defer cancel()
	over := time.NewTimer(limit)
	defer over.Stop()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if s.act != nil {
			if err := s.act(ctx); err != nil {
				return err
			}
		}
		missing, err := s.missing(ctx)
		if err != nil || missing == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			return cli.Cluster(fmt.Errorf("after %s still: %s. Nothing is lost: run the command again to go on", limit, missing))
		case <-ticker.C:
		}
	}
}
