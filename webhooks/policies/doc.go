// Package policies is the validating webhook of VirtualMachinePolicy. It rejects policies that do not compile and
// parameters that violate their schema. A problem in the module is reported with its row, column and line.
//
// A version with failing tests is stored, with a warning for each failing test, while an earlier version is active: it does not take effect, its
// status reports the reason, and the earlier version stays active. A first version that denies has no version to fall back to, and is rejected.
//
// A version that denies is tried, before it is stored: on a synthetic object of each of its kinds, and on a sample of the stored VirtualMachines that it
// selects. If the evaluation of its module fails on one, the version is rejected. VirtualMachines that it denies and the active version allows are in a
// warning.
package policies
