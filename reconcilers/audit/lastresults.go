package audit

import (
	"sync"
	"time"

	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
)

// lastResults passes the results of the last audit to the controller that writes them to statuses. It is safe for concurrent use.
type lastResults struct {
	mutex  sync.Mutex
	byName map[string]lastResult
	// failure is why the last audit failed; then byName is the result of an earlier one.
	failure error
	// changed holds a value when something here has changed.
	changed chan struct{}
}

func newLastResults() *lastResults { return &lastResults{changed: make(chan struct{}, 1)} }

// succeeded stores the result for each approval of the snapshot.
func (o *lastResults) succeeded(snapshot coverage.Snapshot, found counts, at time.Time) {
	byName := make(map[string]lastResult, len(snapshot.Approvals))
	for _, a := range snapshot.Approvals {
		byName[a.Name()] = lastResult{uid: a.UID(), generation: a.Generation(), count: *found.of(a.Name()), at: at}
	}
	o.set(func() { o.byName, o.failure = byName, nil })
}

// failed stores why an audit failed.
func (o *lastResults) failed(err error) { o.set(func() { o.failure = err }) }

func (o *lastResults) set(change func()) {
	o.mutex.Lock()
	change()
	o.mutex.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// of returns the result for the present generation of an approval, nil if it was not audited yet, and why the last audit failed.
func (o *lastResults) of(a coverage.Approval) (*lastResult, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	one, exists := o.byName[a.Name()]
	if !exists || one.uid != a.UID() || one.generation != a.Generation() {
		return nil, o.failure
	}
	return &one, o.failure
}
