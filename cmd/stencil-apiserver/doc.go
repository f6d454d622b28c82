// Command stencil-apiserver is the aggregated API server of templates: process and
// create of a VirtualMachineTemplate, and processedtemplates. See package apiserver.
package main
