// Package artifact reads policies from OCI artifacts that are signed with cosign.
//
// An artifact is one manifest (https://github.com/opencontainers/image-spec/blob/main/manifest.md) of type [Type], without an index. Each of its layers, of
// type [LayerType], is a text in YAML with one or more documents, each a VirtualMachinePolicy. Everything else in it is an error, and so is one of two
// policies of the same name: an artifact is applied as a whole or not at all.
package artifact
