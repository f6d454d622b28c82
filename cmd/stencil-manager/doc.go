// Command stencil-manager serves Stencil's admission webhooks on every replica and runs its reconcilers on the leader.
//
// main reads the flags and wires the packages of the module together; it makes no decisions. Every flag can also be
// given as an environment variable, STENCIL_ and the flag's name in capitals with underscores; a flag on the command
// line takes precedence. docs/operations.md lists them all.
package main
