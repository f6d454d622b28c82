// Command stencilctl is the command line of Stencil, also called as the plugin
// `kubectl stencil`. docs/stencilctl.md describes it.
//
// Each group of commands is a package of its own: policy for `stencilctl policy`. What
// they share stands beside them: cli (streams, exit codes, formats), source (policies and
// objects in files), offline (requests made of files) and cluster (the cluster of a
// kubeconfig).
package main
