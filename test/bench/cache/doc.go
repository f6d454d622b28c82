// Package cache measures what it takes stencil-manager to hold many templates: how long it is not ready after a start, and the
// memory that it occupies then. It needs Linux, for /proc.
package cache
