// Package cli is what all commands of stencilctl share: where they read and write,
// how they end, and in which formats they print.
package cli
