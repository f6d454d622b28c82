// Package transfer imports templates from packages (VirtualMachineTemplateImport) and exports them (VirtualMachineTemplateExport).
//
// The bytes are moved by stencil-mover, in the pod of a Job in the namespace of the transfer, without credentials of the cluster. This package decides
// what exists for a transfer, and reads over HTTPS how far the mover is. Token and certificate of a mover derive from a key of the manager and the UID
// of the transfer, so that nothing has to be stored, and no Secret of a user's namespace has to be read.
//
// All objects of a transfer have its UID in the label v1beta1.LabelTransferUID, and the transfer as owner, so that they are gone with it. An import creates its
// template last, when all digests are verified, and then makes it the owner of the disks.
//
// Everything but statuses is written as a service account of its own, which the policy manager-transfers limits.
package transfer
