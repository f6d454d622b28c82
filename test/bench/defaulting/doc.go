// Package defaulting measures stencil-defaulter over its socket: cached and uncached answers, the start, and memory.
package defaulting
