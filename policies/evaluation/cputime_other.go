//go:build !unix

package evaluation

import "time"

// processTime is not available on this platform: an overloaded host cannot be
// distinguished from slow policies.
func processTime() (time.Duration, bool) { return 0, false }
