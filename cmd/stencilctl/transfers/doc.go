// Package transfers holds the commands import and export of OVAs and OCI artifacts: they create a VirtualMachineTemplateImport or a
// VirtualMachineTemplateExport, follow it to its end, and download the package of an export through the API server.
package transfers
