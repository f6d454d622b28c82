// Package rego compiles and evaluates the policies that cluster administrators write in Rego.
//
// A policy is one module with the entry rules deny and warn. It is compiled once,
// checked against the schemas of what it reads, and then evaluated for many inputs:
//
//   - NewCompiler makes the state that all policies share: the built-in functions that they
//     may call, the helpers under data.lib, the types of input.
//   - Compile makes a Policy of a Definition, or lists what is wrong with it.
//   - NewInput converts the Document of a request to the form that policies read; all
//     policies of one request share it.
//   - Evaluate returns the findings of one policy for one input.
//
// Every policy is treated as hostile: see limits.go for the bounds of its size, and package sandbox for those of its time and
// memory, and for the functions that it can call.
//
// The package is pure: it uses no Kubernetes client, no clock and no file.
package rego
