// Package charts has the files of the charts that other rooms of the tree read, too: the admission policies, the policy library and the
// CustomResourceDefinitions. They are written here and nowhere else, because helm reads no file outside a chart.
package charts

import "embed"

const (
	// Policies is the folder of the admission policies. NAME.yaml is one ValidatingAdmissionPolicy.
	Policies = "stencil/files/policies"
	// Library is the folder of the policy library. NAME.yaml is one VirtualMachinePolicy.
	Library = "stencil/files/library"
	// Definitions is the folder of the CustomResourceDefinitions. GROUP_PLURAL.yaml is one.
	Definitions = "stencil/files/crds"
)

// Files are the files in the folders Policies and Library.
//
//go:embed stencil/files/policies/*.yaml stencil/files/library/*.yaml
var Files embed.FS

// DefinitionFiles are the files in the folder Definitions. They are apart from Files, because few programs need them.
//
//go:embed stencil/files/crds/*.yaml
var DefinitionFiles embed.FS
