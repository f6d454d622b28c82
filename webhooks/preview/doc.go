// Package preview is the webhook that answers previews: dry runs that stencil-apiserver
// makes to learn what would be said about a VirtualMachine. It is the last of the
// mutating webhooks, so that it sees what the validating ones would, and it changes
// nothing: it refuses every request, with the decisions in the refusal. See package
// preview, below, for why.
package preview
