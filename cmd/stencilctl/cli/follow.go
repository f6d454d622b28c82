package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Following are the flags of a command that follows an object to a result.
type Following struct {
	Timeout, Every time.Duration
}

// Register adds the flags.
func (f *Following) Register(flags *pflag.FlagSet, timeout time.Duration) {
	flags.DurationVar(&f.Timeout, "timeout", timeout, "how long to wait")
	flags.DurationVar(&f.Every, "poll-interval", 2*time.Second, "interval between two checks while waiting")
}

// Check rejects durations that are not positive.
func (f *Following) Check() error {
	if f.Timeout <= 0 || f.Every <= 0 {
		return Usage(errors.New("durations must be positive"))
	}
	return nil
}

// Follow calls look at once and at each interval, until it is done or fails. what is the object, which continues when the command ends before.
func (f *Following) Follow(ctx context.Context, streams Streams, what string, look func() (done bool, err error)) error {
	timeout := time.After(f.Timeout)
	ticks := time.NewTicker(f.Every)
	defer ticks.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return Internal(fmt.Errorf("waiting for %s, which continues: %w", what, ctx.Err()))
		case <-timeout:
			fmt.Fprintf(streams.Err, "%s is not finished after %s; it continues\n", what, f.Timeout)
			return ErrFindings
		}
	}
}
