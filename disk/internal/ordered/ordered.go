// Package ordered runs work in parallel and delivers it in order.
package ordered

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Work is what Run needs. Jobs are reused, so that their buffers are.
type Work[Job any] struct {
	// Workers is the number of calls of Do at a time, at least 1.
	Workers int
	// New returns an empty job. Run calls it at most 2 × Workers + 1 times.
	New func() *Job
	// Next fills a job. It returns false after the last. It is called in the order of the jobs, by one goroutine.
	Next func(*Job) (bool, error)
	// Do works on a job.
	Do func(*Job) error
	// Deliver receives the jobs in their order, in the goroutine that called Run.
	Deliver func(*Job) error
}

type slot[Job any] struct {
	job  *Job
	done chan struct{}
}

// Run ends after the last job or with the first error. It leaves no goroutine behind, once the functions return.
func (w Work[Job]) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	slots := 2*w.Workers + 1
	free := make(chan *slot[Job], slots)
	for range slots {
		free <- &slot[Job]{done: make(chan struct{}, 1)}
	}
	waiting, pending := make(chan *slot[Job], slots), make(chan *slot[Job], slots)

	group.Go(func() error {
		defer close(waiting)
		defer close(pending)
		for {
			var s *slot[Job]
			select {
			case s = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			if s.job == nil {
				s.job = w.New()
			}
			more, err := w.Next(s.job)
			if err != nil || !more {
				return err
			}
			waiting <- s
			pending <- s
		}
	})
	for range w.Workers {
		group.Go(func() error {
			for s := range waiting {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err := w.Do(s.job); err != nil {
					return err
				}
				s.done <- struct{}{}
			}
			return nil
		})
	}
	err := func() error {
		for s := range pending {
			select {
			case <-s.done:
			case <-ctx.Done():
				return nil
			}
			if err := w.Deliver(s.job); err != nil {
				return err
			}
			free <- s
		}
		return nil
	}()
	if err != nil {
		cancel()
		_ = group.Wait()
		return err
	}
	return group.Wait()
}
