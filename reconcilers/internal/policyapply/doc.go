// Package policyapply applies VirtualMachinePolicies for the policy library and for policy sources: server-side, and with a label that states which owner applied them. A policy without this label belongs to another owner and is not changed.
//
// Fields that others add to a policy are preserved; an exact owner removes those of the spec.
//
// An Applier reads the stored policies, decides (pure) which to apply, which are not needed any more and which belong to others, and writes them.
package policyapply
