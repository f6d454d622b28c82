// Package cache measures the cost of many templates in stencil-manager: the time until it is ready after a start, and its memory use then. It needs
// Linux, for /proc.
package cache
