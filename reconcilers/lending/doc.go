// Package lending creates the disks of VirtualMachines whose template lends them: DataVolumes that copy a claim or a snapshot from the
// namespace of the template.
//
// virt-controller creates the DataVolumes of a VirtualMachine itself, and requires for copies from another namespace that the ServiceAccount of
// the VirtualMachine's namespace has permission to copy there. A user with permission to use a template usually has no such account. A
// DataVolume that exists is used without that check. So this package creates it, with the same content as virt-controller would: label
// kubevirt.io/created-by, the VirtualMachine as its owner, and the source resolved. The garbage collector deletes it with the VirtualMachine.
//
// # What is lent
//
// A VirtualMachine that was rendered from a template was created by a user with permission to use it: the admission policy template-use checks
// that, and the record in the VirtualMachine's annotations does not change afterwards. A source is lent if the template, as it is now,
// names it and has the label stencil.kubevirt.io/disk-access=Lend: see disks.Loans. The owner of the label has permission to copy
// from the namespace: the admission policy disk-lending checks that. No user and no ServiceAccount gains a permission.
//
// # Account
//
// DataVolumes are created by a ServiceAccount of their own, which the manager impersonates: it may create DataVolumes and copy from
// the namespaces that the admin lists, and nothing else. The policy manager-disks limits what it creates.
//
// The package runs on the leader. gather.go reads, decide.go is pure, reconciler.go creates.
package lending
