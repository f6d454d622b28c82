// Package turns has a work queue in which namespaces take turns: one with many requests delays those of others by one request each time.
package turns
