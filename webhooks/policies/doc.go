// Package policies is the validating webhook of VirtualMachinePolicy. What does not
// compile, and parameters that violate their schema, are refused before they are
// stored, each problem with its row, column and line.
//
// A policy whose own tests fail is stored all the same, with a warning for each: it
// does not take effect, its status says why, and the version before stays in force.
// To refuse it would hold up whoever applies many policies at once, for a mistake that
// does no harm.
package policies
