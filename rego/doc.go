// Package rego compiles and evaluates the policies that cluster administrators
// write in Rego.
//
// A policy is one module with the entry rules deny and warn. It is compiled once,
// checked against the schemas of what it reads, and then evaluated for many inputs:
//
//   - NewCompiler makes what all policies share: the built-in functions that they
//     may call, the helpers under data.lib, the types of input.
//   - Compile makes a Policy of a Definition, or lists what is wrong with it.
//   - NewInput turns the Document of a request into what policies read; all policies
//     of one request share it.
//   - Evaluate says what one policy has against one input.
//
// A policy is hostile until proven otherwise: see limits.go for what bounds its size,
// its time and its memory, and builtins.go for what it can call.
//
// The package is pure: it knows no Kubernetes client, no clock and no file.
package rego
