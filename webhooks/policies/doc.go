// Package policies is the validating webhook of VirtualMachinePolicy. It rejects policies that do not compile and
// parameters that violate their schema. A problem in the module is reported with its row, column and line.
//
// A policy with failing tests of its own is stored, with a warning for each failing test. It does not take effect,
// its status reports the reason, and the previous version stays active. Denying it would block users who apply many
// policies at once, although the error is harmless.
package policies
