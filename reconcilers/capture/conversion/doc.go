// Package conversion converts an existing VirtualMachine to the spec of a VirtualMachineTemplate.
//
// The spec renders to the same VirtualMachine, except for what [Convert] changes: the name becomes the parameter NAME; what identifies one VM is
// removed (package identity); copied disks become dataVolumeTemplates;
// and the options of the request apply. Every ${ in the VM, mostly in scripts, is escaped so that it is preserved.
//
// It also reports what cannot be captured ([Left]) and where passwords and private keys are ([Secret]), by the paths of fields and never by
// their values.
//
// The package is pure, and works on decoded JSON, because KubeVirt's Go types would drop unknown fields.
package conversion
