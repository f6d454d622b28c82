// Package single creates controllers. Most have a single request: their reconcilers process all of their objects on every event.
package single
