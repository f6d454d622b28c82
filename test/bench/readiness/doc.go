// Package readiness measures what it costs to keep the readiness of very many templates current: memory and work while nothing
// changes, and how soon templates follow a DataSource that flips. It needs Linux, for /proc.
package readiness
