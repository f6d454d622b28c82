// Package namespaces answers the webhook about changes of the labels of a Namespace. A change by which TemplateApprovals select other
// namespaces removes label stencil.kubevirt.io/governed in the same request: it was computed from the labels of before, and without it the
// namespace is undecided until the manager has written it again.
//
// The policy namespace-coverage decides who may make such a change, and denies it while the label stays. So the webhook may fail open: while
// no manager runs, the user removes the label.
package namespaces
