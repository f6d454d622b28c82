//go:build race

package formats

import "github.com/vmstencil/stencil/internal/disktest"

// memorySize, of disks that Stencil writes, is small because the race detector makes the test ten times as slow; the gate runs it without.
const memorySize = 16 * disktest.MiB
