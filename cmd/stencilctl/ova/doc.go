// Package ova has the commands of stencilctl that read and sign OVAs. They need no cluster.
package ova
