// Package process holds the commands that create VirtualMachines from templates: process
// renders one, create creates it.
//
// A template in a file, and with --local one of a cluster, is rendered locally by the engine of
// the webhooks; any other is rendered by the cluster.
package process
