// Package typing finds mistakes in policies that the type checker of OPA permits: values that a function receives, paths in constants, comparisons
// that are always or never true.
//
// OPA checks a function for arguments of any type, and does not return the types of local variables. So the package makes rules of parts of a
// compiled policy, and has OPA check them: a probe, whose elements are the values of some terms, has the types of these terms; a copy of a function
// whose arguments are the elements of a probe is checked for the types of one call.
//
// It only ever adds errors about a policy that compiles. Whatever it cannot find out is permitted.
package typing
