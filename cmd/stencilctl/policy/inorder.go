package policy

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// readAhead is how many items inOrder holds that are not taken yet: about as many as a page of a list has, so that the next page
// is read meanwhile.
const readAhead = 256

// inOrder calls evaluate for the items that read adds, on all processors, and take with the results in the order of the items.
// The first error ends all, and is returned; so is the end of ctx.
func inOrder[T, R any](ctx context.Context, read func(ctx context.Context, add func(T) error) error,
	evaluate func(context.Context, T) (R, error), take func(R) error,
) error {
	type work struct {
		item T
		done chan R
	}
	group, ctx := errgroup.WithContext(ctx)
	todo, order := make(chan work, readAhead), make(chan work, readAhead)
	group.Go(func() error {
		defer close(todo)
		defer close(order)
		return read(ctx, func(item T) error {
			one := work{item, make(chan R, 1)}
			for _, to := range []chan work{order, todo} {
				select {
				case to <- one:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for one := range todo {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				result, err := evaluate(ctx, one.item)
				if err != nil {
					return err
				}
				one.done <- result
			}
			return nil
		})
	}
	group.Go(func() error {
		for one := range order {
			select {
			case result := <-one.done:
				if err := take(result); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return group.Wait()
}
