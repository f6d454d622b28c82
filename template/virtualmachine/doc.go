// Package virtualmachine reads the annotations and labels that connect a VirtualMachine with its template: the reference,
// the parameters, and the record of the rendering. Webhooks and reconcilers use it. It works on decoded JSON, because the
// types of KubeVirt would drop unknown fields.
package virtualmachine
