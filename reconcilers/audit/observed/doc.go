// Package observed watches what runs: VirtualMachines, their instances, the pods and the claims. It reports the namespaces in which
// something changed that the audit compares, so that a change of an instance alone is found within seconds.
//
// Of each object it retains owners, images and a digest of what is compared. A VirtualMachineInstance is written all the time: an event
// whose digest is the stored one reports nothing. Objects are reduced before they are stored, and lists are read page by page.
//
// It runs on the leader. All namespaces are watched, because RBAC and the API server offer nothing between one namespace and all; what the
// audit does is limited to governed ones.
package observed
