// Package conversion makes the spec of a VirtualMachineTemplate of a VirtualMachine that exists.
//
// What comes out renders back to the VirtualMachine, but for what [Convert] changes on purpose: the name becomes the parameter
// NAME; what identifies one machine (addresses, serial numbers, UUIDs, hostname) and the bookkeeping of controllers go; disks that
// were copied become dataVolumeTemplates; and what the request asks for beyond that. Every ${ that the machine has already, in its
// scripts mostly, is written so that it stays what it is.
//
// It also tells what could not come along ([Left]) and where passwords and private keys are ([Secret]): by the paths of fields,
// never by what is in them.
//
// The package is pure, and works on decoded JSON, because the types of KubeVirt would drop what they do not know.
package conversion
