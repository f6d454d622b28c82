// Package observed watches VirtualMachines, their instances, the pods and the claims. It reports the namespaces in which something changed
// that the audit compares, so that a change of an instance alone is found within seconds.
//
// Of each object it stores owners, images and a digest of what is compared. A VirtualMachineInstance is updated frequently: an event with
// an unchanged digest reports nothing. Objects are reduced before they are stored, and lists are read page by page.
//
// It runs on the leader. All namespaces are watched, because RBAC and the API server offer only one namespace or all; the audit limits
// itself to governed ones.
package observed
