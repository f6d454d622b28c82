package audit

import (
	"sync"
	"time"

	"github.com/vmstencil/stencil/reconcilers/coverage"
)

// outcomes passes the results of the last audit to the controller that writes them to statuses. It is safe for concurrent use.
type outcomes struct {
	mutex  sync.Mutex
	byName map[string]outcome
	// failure is why the last audit failed; then byName is the result of an earlier one.
	failure error
	// news holds a value when something here has changed.
	news chan struct{}
}

func newOutcomes() *outcomes { return &outcomes{news: make(chan struct{}, 1)} }

// succeeded stores the result for each approval of the snapshot.
func (o *outcomes) succeeded(snapshot coverage.Snapshot, found counts, at time.Time) {
	byName := make(map[string]outcome, len(snapshot.Approvals))
	for _, a := range snapshot.Approvals {
		byName[a.Name()] = outcome{uid: a.UID(), generation: a.Generation(), count: *found.of(a.Name()), at: at}
	}
	o.set(func() { o.byName, o.failure = byName, nil })
}

// failed stores why an audit failed.
func (o *outcomes) failed(err error) { o.set(func() { o.failure = err }) }

func (o *outcomes) set(change func()) {
	o.mutex.Lock()
	change()
	o.mutex.Unlock()
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// of returns the result for the present generation of an approval, nil if it was not audited yet, and why the last audit failed.
func (o *outcomes) of(a coverage.Approval) (*outcome, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	one, known := o.byName[a.Name()]
	if !known || one.uid != a.UID() || one.generation != a.Generation() {
		return nil, o.failure
	}
	return &one, o.failure
}
