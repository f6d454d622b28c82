// Package webhooks registers the admission webhooks of the manager. Each handler is a package below it, and serving is the
// server that all of them share.
package webhooks
