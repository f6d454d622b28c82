// Package readiness measures the cost of updating the readiness of very many templates: memory and work while nothing changes, and how soon templates
// follow a DataSource that flips, alone and beside a client that writes as many statuses. It needs Linux, for /proc.
package readiness
