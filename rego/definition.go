package rego

import "github.com/vmstencil/stencil/rego/schema"

// Kinds of objects that a policy can be about, the values of Definition.Kinds.
const (
	KindVirtualMachine                = "VirtualMachine"
	KindVirtualMachineTemplate        = "VirtualMachineTemplate"
	KindVirtualMachineTemplateRequest = "VirtualMachineTemplateRequest"
	KindVirtualMachineTemplateImport  = "VirtualMachineTemplateImport"
	KindVirtualMachineTemplateExport  = "VirtualMachineTemplateExport"
)

// Kinds returns the kinds that a policy can be about.
func Kinds() []string { return schema.Kinds() }

// Definition is the source of a policy and its settings.
type Definition struct {
	// Name is the name of the VirtualMachinePolicy, or of the file.
	Name string
	// Source is one module in Rego v1 of at most MaxSourceBytes.
	Source string
	// Parameters are what the policy reads as data.parameters: JSON values. If they are nil, as of a module alone, what the policy reads is not checked.
	Parameters map[string]any
	// Schema is a structural OpenAPI v3 schema of Parameters. Without one any
	// parameters are accepted, and the policy may read any.
	Schema map[string]any
	// Data are the values of the cluster that the policy reads as data.cluster.NAME. Their names are unique.
	Data []Reference
	// Kinds are the kinds that input.object can have; VirtualMachine when empty.
	Kinds []string
	// AnyFields permits the policy to read any field of objects, as if their types were unknown. It is for a policy that compiled when the schemas had
	// more fields. A field that an object does not have is undefined.
	AnyFields bool
}
