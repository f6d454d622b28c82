// Package defaulting measures stencil-defaulter over its socket: answers that are known, machines that are not, the start, and memory.
package defaulting
