// Package spec reads a VirtualMachinePolicy, from the API server or from a
// file, into what the engine takes: the definition to compile, the tests to run, and
// the conditions under which the policy is evaluated.
//
// It fills the defaults of the definition of VirtualMachinePolicy, which a file that
// never met an API server lacks, and reports what the definition cannot: values that
// are not the JSON that they should be.
package spec
