// Package fastpath evaluates policies without OPA's evaluator where it can, and leaves the rest to OPA.
//
// It translates the rules that OPA has compiled, once, into steps with numbered variables. Most expressions of policies are few forms: a path into the
// input, a comparison, the call of a function, a negation, a comprehension. A step either decides its expression exactly as OPA does, with the same
// bounded functions, or gives up, and then OPA evaluates the policy from the beginning. It gives up at every form that it does not have, at every error
// and conflict, and after a sixteenth of the steps that OPA may take. So errors and exceeded limits are always OPA's.
package fastpath
