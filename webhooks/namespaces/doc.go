// Package namespaces is the mutating webhook for changes of the labels of a Namespace. A change by which
// TemplateApprovals select other namespaces removes label stencil.kubevirt.io/governed in the same request. That
// label was computed from the previous labels. Without it the namespace is undecided until the manager has set the
// label again.
//
// The policy namespace-coverage decides which users may make such a change, and denies it while the label remains.
// The webhook may therefore fail open: while no manager runs, the user removes the label.
package namespaces
