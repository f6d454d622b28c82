// Package install has the commands about Stencil's installation in a cluster.
package install
