// Package transfers holds the commands import and export of OVAs and OCI artifacts: they create a VirtualMachineTemplateImport or a
// VirtualMachineTemplateExport, follow it to its end, and download the package of an export, by its URL outside of the cluster or
// through the API server.
package transfers
