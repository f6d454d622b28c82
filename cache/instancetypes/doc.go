// Package instancetypes knows the instance types and preferences of KubeVirt, for
// policies that look at the size of a VirtualMachine: one that names an instance type
// says nothing about its size itself.
//
// A reflector of client-go for each of the four kinds keeps the objects, and a fifth
// the ControllerRevisions that KubeVirt makes of them: a VirtualMachine goes on with the
// content of then when the object has changed since. Revisions are as many as
// VirtualMachines and nearly all alike, so equal contents are kept once.
//
// A revision may be named by whoever creates a VirtualMachine. Only those that carry
// KubeVirt's label are kept; any other is not known, and a policy that cannot be sure
// of the size fails.
//
// KubeVirt may be missing, or be installed later: a kind that is not served is a kind
// of which there is nothing, until it is.
package instancetypes
