// Package reconcilers adds the reconcilers of the leader to the manager. Each reconciler is a package below it.
package reconcilers
