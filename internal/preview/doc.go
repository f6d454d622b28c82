// Package preview is how the webhooks tell stencil-apiserver what would be said about a
// VirtualMachine that nobody creates.
//
// The server makes a dry run of the creation, marked as a preview (see package
// delegation). A webhook that is called after every other mutating one sees the machine
// as it would be judged, asks the judges, and answers with a refusal whatever they say:
// its status carries the decisions, each as a cause. So the answer is whole where
// warnings are cut, and no mistake in all this can ever store anything.
package preview
