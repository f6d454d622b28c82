package mover

import (
	"encoding/json"
	"sync"

	"github.com/vmstencil/stencil/transfer"
)

// report is the State of the mover, which the server reads while the work changes it.
type report struct {
	mutex sync.Mutex
	state transfer.State
}

// change changes the state.
func (r *report) change(change func(*transfer.State)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change(&r.state)
}

// phase returns the phase.
func (r *report) phase() transfer.Phase {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.state.Phase
}

// encode returns the state in JSON.
func (r *report) encode() ([]byte, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return json.Marshal(&r.state)
}

// disk returns a function that changes the progress of a disk.
func (r *report) disk(name string) func(change func(*transfer.Progress)) {
	return func(change func(*transfer.Progress)) {
		r.change(func(s *transfer.State) {
			for i := range s.Disks {
				if s.Disks[i].Name == name {
					change(&s.Disks[i])
				}
			}
		})
	}
}
