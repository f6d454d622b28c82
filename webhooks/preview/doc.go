// Package preview is the webhook that answers previews: dry runs in which stencil-apiserver requests the decisions
// about a VirtualMachine. It is the last of the mutating webhooks, so that it receives the same object as the
// validating ones. It changes nothing and denies every request, with the decisions in the denial. See package
// internal/preview for the reason.
package preview
