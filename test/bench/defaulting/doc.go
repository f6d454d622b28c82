// Package defaulting measures stencil-defaulter over its socket: cached answers, uncached VMs, the start, and memory.
package defaulting
