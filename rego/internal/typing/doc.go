// Package typing finds mistakes in policies that the type checker of OPA permits: values that a function receives, paths in constants, comparisons
// that are always or never true.
//
// OPA checks a function for arguments of any type, and forgets the types of local variables. So that its checker answers, the package adds rules to
// a compiled policy and compiles again: a probe, whose elements are the values of some terms, has the types of these terms; a copy of a function
// whose arguments are the elements of a probe is checked for the types of one call.
//
// It only ever adds errors about a policy that compiles. Whatever it cannot find out is permitted.
package typing
