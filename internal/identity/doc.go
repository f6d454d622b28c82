// Package identity removes the identity of a VirtualMachine, so that a template can be made of it. Captures and imports use it.
//
// Rules decide, not lists of known keys: fields that the table below names; annotations, labels and selectors that hold the VM's own name, UID,
// host, MAC or IP address, or that a controller writes for one object. A value that is the VM's name, or has it as a part, gets the new name
// instead. Data for the guest are not changed, because only their author can change them consistently: the identity of the VM in them is reported.
//
// The package is pure and works on decoded JSON.
package identity
