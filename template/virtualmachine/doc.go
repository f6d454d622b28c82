// Package virtualmachine reads what a VirtualMachine says about its template: the
// reference, the parameters, and the record of the rendering. Webhooks and
// reconcilers read it alike, so it lives below them. It works on decoded JSON,
// because the types of KubeVirt would drop what they do not know.
package virtualmachine
