package traffic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Traffic is running or ended traffic.
type Traffic struct {
	options Options
	fixture *fixture
	cancel  context.CancelFunc
	// done is closed after the last write was answered and everything was cleaned up; cleanupErr is read after that.
	done       chan struct{}
	cleanupErr error

	mutex  sync.Mutex
	report Report
}

// Start makes the users and the VirtualMachines that are changed, and begins to write. It ends, and cleans up, with Stop, with the
// context, or when a bound of the options is reached.
func Start(ctx context.Context, options Options) (*Traffic, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	fixture, err := newFixture(ctx, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the traffic: %w", err), fixture.cleanUp(ctx))
	}
	running, cancel := context.WithTimeout(ctx, options.MaxDuration)
	t := &Traffic{options: options, fixture: fixture, cancel: cancel, done: make(chan struct{})}
	go t.run(running)
	return t, nil
}

// Stop ends the traffic, waits for the last answers, deletes what the traffic created, and returns the report. It may be called more
// than once. The API server has to run.
func (t *Traffic) Stop() (Report, error) {
	t.cancel()
	<-t.done
	return t.Report(), t.cleanupErr
}

// Report returns the results of the writes so far.
func (t *Traffic) Report() Report {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return Report{Writes: append([]Write(nil), t.report.Writes...), NotSent: t.report.NotSent}
}

// AwaitWritten returns when n writes of each kind that began after the call were written.
func (t *Traffic) AwaitWritten(ctx context.Context, n int) error {
	began := time.Now()
	for _, kind := range t.options.Kinds {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, t.options.MaxDuration, true, func(context.Context) (bool, error) {
			select {
			case <-t.done:
				return false, errors.New("the traffic has ended")
			default:
			}
			return t.Report().Of(kind).Between(began, time.Now()).Count(Written) >= n, nil
		})
		if err != nil {
			return fmt.Errorf("waiting until %d writes %q are written: %w:\n%s", n, kind, err, t.Report().Between(began, time.Now()))
		}
	}
	return nil
}

// run sends a write at each tick, whether those before have been answered or not.
func (t *Traffic) run(ctx context.Context) {
	defer close(t.done)
	defer t.cancel()
	// A sent write is not cancelled when the traffic ends.
	sent := context.WithoutCancel(ctx)
	var pending sync.WaitGroup
	slots := make(chan struct{}, maxPending)
	tick := time.NewTicker(time.Duration(float64(time.Second) / t.options.Rate))
	defer tick.Stop()
	for n := 0; n < t.options.MaxWrites && ctx.Err() == nil; n++ {
		select {
		case <-ctx.Done():
			continue
		case <-tick.C:
		}
		select {
		case slots <- struct{}{}:
			pending.Go(func() {
				defer func() { <-slots }()
				t.write(sent, n)
			})
		default:
			t.mutex.Lock()
			t.report.NotSent++
			t.mutex.Unlock()
		}
	}
	pending.Wait()
	t.cleanupErr = t.fixture.cleanUp(sent)
}

// write makes the n-th write, in its kind the n/len(Kinds)-th, and records its result.
func (t *Traffic) write(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	kind := t.options.Kinds[n%len(t.options.Kinds)]
	writer := t.fixture.writers[kind]
	began := time.Now()
	conflicts, err := writer.write(ctx, n/len(t.options.Kinds))
	made := Write{Began: began, Took: time.Since(began), Kind: kind, User: writer.user, Conflicts: conflicts, Result: Classify(err)}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.report.Writes = append(t.report.Writes, made)
}
