// Package conflict repeats writes by the fakes of the control plane that conflict with another writer. Controllers read and write the same objects at
// the same time, and a conflict means only that one of them was faster.
package conflict

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// backoff is longer than client-go's: on an overloaded host a read and a write take long enough for several conflicts in a row.
var backoff = wait.Backoff{Steps: 20, Duration: 10 * time.Millisecond, Factor: 1.2, Jitter: 0.2}

// Retry calls write until it returns no conflict, 20 times at most, and returns what it returned last. Each call has to read the object
// again.
func Retry(write func() error) error { return retry.RetryOnConflict(backoff, write) }
