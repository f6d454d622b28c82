// Package preview passes decisions from the webhooks to stencil-apiserver, about a VirtualMachine that is not created.
//
// The server makes a dry run of the creation, marked as a preview (see package delegation). A webhook that is called after every other mutating one
// evaluates the VirtualMachine in its final form, and always denies the request: the status of the denial carries the decisions, each as a cause. So
// the answer is complete, while warnings may be truncated, and no error in this code can store anything.
package preview
