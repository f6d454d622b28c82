// Package cli is shared by all commands of stencilctl: input and output streams, exit codes and
// output formats.
package cli
