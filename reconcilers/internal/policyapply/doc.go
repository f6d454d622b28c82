// Package policyapply applies VirtualMachinePolicies for the policy library and for policy sources: server-side, so that fields that others add to a policy
// are preserved, and with a label that states which owner applied them. A policy without this label belongs to another owner and is not changed.
//
// An Applier reads the stored policies, decides (pure) which to apply, which are not needed any more and which belong to others, and writes them.
package policyapply
