// Package instancetypes caches the instance types and preferences of KubeVirt, for policies that evaluate the size of a
// VirtualMachine: the spec of a VM with an instance type does not contain its size.
//
// A reflector of client-go for each of the four kinds caches the objects. A fifth caches the ControllerRevisions that
// KubeVirt makes of them: a VirtualMachine retains the content of its revision when the object changes later. There are as
// many revisions as VirtualMachines and most are equal, so equal contents are stored once.
//
// The user who creates a VirtualMachine may set the name of a revision. Only revisions with KubeVirt's label are cached. Any
// other does not resolve, and a policy that needs the size fails.
//
// KubeVirt may be missing, or be installed later. While a kind is not served, the cache has no objects of it.
package instancetypes
