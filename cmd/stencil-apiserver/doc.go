// Command stencil-apiserver is the aggregated API server for templates: the process and create
// subresources of VirtualMachineTemplate, processedtemplates, availabletemplates and defaults. See package apiserver.
package main
