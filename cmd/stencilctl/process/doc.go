// Package process holds the commands that make VirtualMachines of templates: process
// renders one, create creates it.
//
// A template in a file, and with --local one of a cluster, is rendered here by the
// engine of the webhooks; any other is rendered by the cluster.
package process
