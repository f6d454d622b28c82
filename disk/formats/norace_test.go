//go:build !race

package formats

import "github.com/vmstencil/stencil/internal/disktest"

// memorySize is the size of the disk that Stencil writes, in bytes, more than the limit of memory.
const memorySize = 160 * disktest.MiB
