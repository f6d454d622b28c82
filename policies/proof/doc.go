// Package proof decides for all values of a template's parameters what policies find in its VirtualMachines: policy × approval × template.
//
// # Values
//
// The values of a parameter are finite if the template or the approval lists them, if it is a bool, or if it is an integer between two bounds; and if
// the approval closes it, because then it has its default. All combinations of finite values that the template accepts and the approval allows are
// decided. A parameter with other values is held at one: its default, or what package sample takes. Every result names the parameters that are held,
// unless the policy reads nothing that depends on them.
//
// A value that is the default is left out, as users do. VirtualMachines have no fields besides those of the template: overrides of the approval are not
// used. Time, namespace and user of the request are held, too; a result names those that the policy reads.
//
// # Pruning
//
// Every combination is rendered, and compared by what the policies may read of the input (rego.Reads): VirtualMachines that are equal there are evaluated
// once. If there are more combinations than the limit, parameters of which the policies read nothing are held as well, and then each policy is decided
// alone, for the parameters of which it reads something. What depends on a parameter is known from the compiled template (template.Places). A policy for
// which there are still too many combinations is not decided.
//
// The package is pure: it has no client and no clock.
package proof
