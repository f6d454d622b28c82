// Package server is what stencil-manager and stencil-apiserver have in common as programs: how they start, log and end, and the flags that define the
// source of serving certificates, which both have to interpret alike.
package server
