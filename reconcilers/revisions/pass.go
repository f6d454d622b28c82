package revisions

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/revision"
)

const (
	// workers is the number of copies that are processed at a time.
	workers = 8

	// progressInterval is the time between two reports of a running pass.
	progressInterval = 5 * time.Second
)

// settings are the spec of a RevisionMigration.
type settings struct {
	mode       v1alpha1.RevisionMigrationMode
	namespaces []string
	selector   labels.Selector
	// rate is the number of copies per second; 0 is no limit.
	rate int32
	// oldest is the creation time before which backups have expired.
	oldest time.Time
	// progress, if set, is called about every progressInterval, with the mutex of the result held. The pass ends early if it returns false.
	progress func(*result) bool
}

func (s settings) writes() bool { return s.mode != v1alpha1.RevisionMigrationReport }

// result is what a pass has done.
type result struct {
	*inventory
	mutex                                 sync.Mutex
	migrated, rolledBack, healed, expired int
	skips, failures                       []finding
	// stopped is true if the pass ended early.
	stopped bool
}

// touched is called for every ControllerRevision that was written.
type touched func(e *entry)

// run makes one pass.
func (c *cluster) run(ctx context.Context, s settings, notify touched) (*result, error) {
	inv, err := c.gather(ctx, s.selector)
	if err != nil {
		return nil, err
	}
	r := &result{inventory: inv}
	if !s.writes() {
		return r, nil
	}
	if s.mode != v1alpha1.RevisionMigrationDryRun {
		r.backupsOf(ctx, c, s)
	}
	if s.mode != v1alpha1.RevisionMigrationRollback {
		r.entriesOf(ctx, c, s, notify)
	}
	return r, ctx.Err()
}

// backupsOf heals, expires or rolls back.
func (r *result) backupsOf(ctx context.Context, c *cluster, s settings) {
	due := slices.DeleteFunc(slices.Clone(r.backups), func(b storedBackup) bool {
		return !s.includes(b.Namespace) || s.mode != v1alpha1.RevisionMigrationRollback && !b.due(s.oldest)
	})
	r.parallel(ctx, s, len(due), func(i int) {
		key := due[i].NamespacedName
		var done backupResult
		var err error
		if s.mode == v1alpha1.RevisionMigrationRollback {
			done, err = c.rollBack(ctx, r.inventory, key)
		} else {
			done, err = c.heal(ctx, r.inventory, key, s.oldest)
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.note(key, err)
		switch done {
		case healed:
			r.healed++
		case rolledBack:
			r.rolledBack++
		case expired:
			r.expired++
		}
	})
}

// entriesOf migrates, or tries to in dry runs.
func (r *result) entriesOf(ctx context.Context, c *cluster, s settings, notify touched) {
	old := slices.DeleteFunc(slices.Clone(r.entries), func(e *entry) bool { return e.action == revision.Retain || !s.includes(e.Namespace) })
	r.parallel(ctx, s, len(old), func(i int) {
		e := old[i]
		err := r.process(ctx, c, s, e)
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.note(e.NamespacedName, err)
		if err != nil {
			return
		}
		r.migrated++
		if s.mode == v1alpha1.RevisionMigrationApply {
			e.class, e.version, e.action, e.encoded = revision.Current, revision.Target, revision.Retain, nil
			if notify != nil {
				notify(e)
			}
		}
	})
}

func (r *result) process(ctx context.Context, c *cluster, s settings, e *entry) error {
	switch {
	case e.action == revision.Skip:
		return skipped(e.message)
	case !r.state.selects(e):
		return skipped("the selector does not select its owner")
	}
	if reason := r.state.guard(e); reason != "" {
		return skipped(reason)
	}
	if s.mode == v1alpha1.RevisionMigrationApply {
		return c.migrate(ctx, e)
	}
	return c.plan(ctx, e)
}

// note records why a copy was not processed.
func (r *result) note(key types.NamespacedName, err error) {
	if err == nil {
		return
	}
	found := finding{key.Namespace, "ControllerRevision " + key.Name, err.Error()}
	var skip skipped
	if errors.As(err, &skip) {
		r.skips = append(r.skips, found)
		return
	}
	r.failures = append(r.failures, found)
}

// parallel calls work for each index, at the rate of the settings, until ctx ends.
func (r *result) parallel(ctx context.Context, s settings, count int, work func(int)) {
	limiter := flowcontrol.NewFakeAlwaysRateLimiter()
	if s.rate > 0 {
		limiter = flowcontrol.NewTokenBucketRateLimiter(float32(s.rate), int(s.rate))
	}
	defer limiter.Stop()
	indices := make(chan int)
	var group sync.WaitGroup
	for range min(workers, count) {
		group.Go(func() {
			for i := range indices {
				work(i)
			}
		})
	}
	reported := time.Now()
	for i := range count {
		if r.stopped || limiter.Wait(ctx) != nil || ctx.Err() != nil {
			break
		}
		if s.progress != nil && time.Since(reported) > progressInterval {
			r.mutex.Lock()
			r.stopped = !s.progress(r)
			r.mutex.Unlock()
			reported = time.Now()
		}
		indices <- i
	}
	close(indices)
	group.Wait()
}

func (s settings) includes(namespace string) bool {
	return len(s.namespaces) == 0 || slices.Contains(s.namespaces, namespace)
}
