// Package server is what stencil-manager and stencil-apiserver have in common as
// programs: how they start, log and end, and the flags that say where serving
// certificates come from, which the two have to understand alike.
package server
