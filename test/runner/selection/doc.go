// Package selection decides which packages of tests a change can have affected.
//
// The result of a package follows from its inputs: the sources that its binary is linked with, its own files, the product's packages that it
// executes in other processes, charts and documents that it names, tools, module files and the flags of the call. [Tree] computes one digest of
// them. A package that has passed with the same digest is left out, unless it is its turn: each run repeats a quarter of what it could leave out,
// and everything that has not run for four landings.
//
// What a package executes in other processes is measured, see [Executed]. What no measurement has seen counts for every package that starts
// Stencil's programs.
package selection
