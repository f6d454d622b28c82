// Command stencilctl is the command line of Stencil, also called as the plugin
// `kubectl stencil`. docs/stencilctl.md describes it.
//
// Each group of commands is a separate package, such as policy for `stencilctl policy`. They
// share the packages cli (streams, exit codes, formats), source (policies and objects in
// files), offline (requests built from files), cluster (the cluster of a kubeconfig) and
// templates (compile and render templates).
package main
