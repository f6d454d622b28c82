// Package spec converts a VirtualMachinePolicy, from the API server or from a file,
// into the types of the engine: the definition to compile, the tests to run, and the
// conditions under which the policy is evaluated.
//
// It sets the defaults of the definition of VirtualMachinePolicy, which a file
// lacks, and reports errors that the definition cannot detect: values that are not
// the expected JSON.
package spec
