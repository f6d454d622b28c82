// Package single creates controllers with a single request. Their reconcilers process all of their objects on every event.
package single
