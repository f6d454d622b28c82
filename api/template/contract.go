package template

// What a person writes on a VirtualMachine.
const (
	// AnnotationTemplateRef names the VirtualMachineTemplate to render from:
	// "NAME" in the VirtualMachine's own namespace, or "NAMESPACE/NAME". It is
	// immutable once the VirtualMachine is stored.
	AnnotationTemplateRef = "template.kubevirt.io/template-ref"

	// AnnotationParameterPrefix, followed by the name of a parameter, is the
	// annotation that holds the value of that parameter.
	AnnotationParameterPrefix = "parameter.template.kubevirt.io/"
)

// What the render webhook writes on a VirtualMachine. Whatever a person sends
// under these keys is discarded.
const (
	// AnnotationRendered holds a JSON object that says what was rendered: the
	// template's namespace, name, UID and generation, and the digest of its spec.
	AnnotationRendered = "template.kubevirt.io/rendered"

	// LabelTemplate holds the name of the template.
	LabelTemplate = "vm.kubevirt.io/template"

	// LabelTemplateNamespace holds the namespace of the template.
	LabelTemplateNamespace = "vm.kubevirt.io/template.namespace"

	// LabelTemplateRevision holds the generation of the template.
	LabelTemplateRevision = "vm.kubevirt.io/template.revision"
)
