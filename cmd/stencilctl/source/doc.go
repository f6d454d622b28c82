// Package source reads policies and other objects from files, as specified on the command line:
// manifests in YAML or JSON with any number of documents, plain Rego modules, folders of those,
// and "-" for the standard input.
//
// It records positions, so that a problem in the Rego of a manifest is reported at its line of
// the manifest.
package source
