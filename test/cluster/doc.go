// Package cluster runs a real cluster on this host: one node in namespaces of its own (package node), KubeVirt by its own operator, and Stencil by its chart
// and the images of a release. Nothing of it is simulated. It needs root.
//
// The only thing outside of the namespaces is a port on loopback, which leads to the API server.
package cluster
