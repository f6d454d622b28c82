// Package readiness measures the cost of updating the readiness of very many templates: memory and work while nothing changes, and how soon templates
// follow a DataSource that flips. It needs Linux, for /proc.
package readiness
