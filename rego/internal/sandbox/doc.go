// Package sandbox bounds the time and the memory of Rego: which built-in functions a policy may call and with what arguments, how
// many expressions it evaluates and how large its values become, and which rules would already take the compiler too long. The
// functions of OPA cannot be interrupted, so their arguments are checked before they are called.
package sandbox
