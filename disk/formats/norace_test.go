//go:build !race

package formats

import "github.com/vmstencil/stencil/disk/internal/disktest"

// memorySize is the size of the disk in bytes, more than the limit of memory.
const memorySize = 160 * disktest.MiB
