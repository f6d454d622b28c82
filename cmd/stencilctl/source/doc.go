// Package source reads policies and other objects from files, as the commands of
// stencilctl name them: manifests in YAML or JSON with any number of documents, plain
// Rego modules, folders of those, and "-" for the standard input.
//
// It keeps where things stand, so that a problem in the Rego of a manifest is
// reported at its line of the manifest.
package source
