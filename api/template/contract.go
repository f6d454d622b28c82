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

	// AnnotationCreatedBy holds the name of the user for whom stencil-apiserver
	// created the VirtualMachine. A VirtualMachine that somebody created by
	// themselves has none.
	AnnotationCreatedBy = "template.kubevirt.io/created-by"

	// LabelTemplate holds the name of the template.
	LabelTemplate = "vm.kubevirt.io/template"

	// LabelTemplateNamespace holds the namespace of the template.
	LabelTemplateNamespace = "vm.kubevirt.io/template.namespace"

	// LabelTemplateRevision holds the generation of the template.
	LabelTemplateRevision = "vm.kubevirt.io/template.revision"
)

// AnnotationBoundValues is how stencil-apiserver tells the render webhook which
// values it has settled, generated ones among them, so that the VirtualMachine and
// the message which it answers with hold the same. It is never stored, and
// believed of nobody else.
const AnnotationBoundValues = "delegation.template.kubevirt.io/bound-values"

// Defaults that the guest sees.
const (
	// AnnotationDefaultsSkip with the value "true" keeps a VirtualMachine's defaults
	// from being filled in. The label of the same name does that for a namespace.
	AnnotationDefaultsSkip = "defaults.template.kubevirt.io/skip"

	// AnnotationDefaultsApplied holds a JSON object that says with which libvirt and
	// QEMU the defaults were filled in, the machine type, what that was pinned from, and
	// the addresses that were written. The defaults webhook writes it; whatever a person
	// sends under this key is discarded, unless the webhook is to leave the machine alone.
	AnnotationDefaultsApplied = "defaults.template.kubevirt.io/applied"

	// AnnotationDefaultsFailed says why they were not filled in. The defaults webhook
	// writes it, and removes it once they are.
	AnnotationDefaultsFailed = "defaults.template.kubevirt.io/failed"
)
