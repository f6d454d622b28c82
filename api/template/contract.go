package template

// Annotations that users write on a VirtualMachine.
const (
	// AnnotationTemplateRef names the VirtualMachineTemplate to render from:
	// "NAME" in the VirtualMachine's own namespace, or "NAMESPACE/NAME". It is
	// immutable once the VirtualMachine is stored.
	AnnotationTemplateRef = "template.kubevirt.io/template-ref"

	// AnnotationParameterPrefix, followed by the name of a parameter, is the
	// annotation that holds the value of that parameter.
	AnnotationParameterPrefix = "parameter.template.kubevirt.io/"
)

// AnnotationProcessed is on a VirtualMachine that process returns, and holds the digest of the template that it was rendered from. A
// VirtualMachine that is created with it is complete: nothing of the template is added to it. Afterwards it has no effect.
const AnnotationProcessed = "template.kubevirt.io/processed"

// Annotations and labels that the render webhook writes on a VirtualMachine. Values that
// users send for these keys are discarded.
const (
	// AnnotationRendered holds a JSON object that describes the rendered template: its
	// namespace, name, UID and generation, and the digest of its spec.
	AnnotationRendered = "template.kubevirt.io/rendered"

	// AnnotationOverrides holds a JSON object with the places of the spec where the
	// VirtualMachine has something else than its template, and what the template has
	// there: {"value": …}, {} for nothing, or {"hidden": "Secret"|"TooLarge"}.
	AnnotationOverrides = "template.kubevirt.io/overrides"

	// AnnotationCreatedBy holds the name of the user for which
	// stencil-apiserver created the VirtualMachine. A VirtualMachine that a
	// user created directly does not have it.
	AnnotationCreatedBy = "template.kubevirt.io/created-by"

	// AnnotationRenderedFor names the user by whose permission the template lends disks to
	// the VirtualMachine: UID of the template, a digest of the sources, user and groups. Only
	// a VirtualMachine that copies disks from another namespace has it.
	AnnotationRenderedFor = "template.kubevirt.io/rendered-for"

	// AnnotationWrittenBy names the user who wrote the specification of a VirtualMachineTemplate
	// or VirtualMachineTemplateExport: the generation, user and groups. Of the templates, only those
	// have it that refer to objects of other namespaces.
	AnnotationWrittenBy = "template.kubevirt.io/written-by"

	// LabelTemplate holds the name of the template.
	LabelTemplate = "vm.kubevirt.io/template"

	// LabelTemplateNamespace holds the namespace of the template.
	LabelTemplateNamespace = "vm.kubevirt.io/template.namespace"

	// LabelTemplateRevision holds the generation of the template.
	LabelTemplateRevision = "vm.kubevirt.io/template.revision"
)

// AnnotationBoundValues holds the values that stencil-apiserver has bound,
// including generated values. stencil-apiserver passes them to the render webhook,
// so that the VirtualMachine and the message in the response contain the same
// values. The annotation is never stored, and accepted from stencil-apiserver
// only.
const AnnotationBoundValues = "delegation.template.kubevirt.io/bound-values"

// Annotations for defaults that are visible to the guest.
const (
	// AnnotationDefaultsSkip with the value "true" disables the defaults for a
	// VirtualMachine. The label of the same name disables them for a namespace.
	AnnotationDefaultsSkip = "defaults.template.kubevirt.io/skip"

	// AnnotationDefaultsApplied holds a JSON object with the versions of libvirt and QEMU
	// that filled in the defaults, the machine type, the alias that it was pinned from,
	// and the addresses that were written. The defaults webhook writes it and discards a
	// value that users send, unless the VirtualMachine is exempt from defaults.
	AnnotationDefaultsApplied = "defaults.template.kubevirt.io/applied"

	// AnnotationDefaultsFailed holds the reason why the defaults were not filled in. The
	// defaults webhook writes it, and removes it once they are.
	AnnotationDefaultsFailed = "defaults.template.kubevirt.io/failed"
)

// LabelDiskAccess on a VirtualMachineTemplate with the value DiskAccessLend lends the disks of the template: users who may use it
// get copies of the claims and snapshots of its namespace that it names, without a permission of their own there. The policy
// disk-lending requires that permission of users who set the label. A webhook adds it to new templates of such users; with
// DiskAccessNone, or any other value, the template lends nothing.
const (
	LabelDiskAccess = "stencil.kubevirt.io/disk-access"
	DiskAccessLend  = "Lend"
	DiskAccessNone  = "None"
)

// Annotations of a VirtualMachineTemplate for clients that have only the fields of the published API, and drop all others.
const (
	// AnnotationExtensions holds the fields that the published API lacks: JSON with a digest, compressed if it is large. A webhook
	// writes it. The fields are restored from it if a write has none of them. Nothing is rendered from it.
	AnnotationExtensions = "template.kubevirt.io/extensions"

	// AnnotationDropExtensions with the value "true" drops the fields: a write without them restores nothing. It may stay on a
	// template without such fields, and is removed from one that has any.
	AnnotationDropExtensions = "template.kubevirt.io/drop-extensions"
)

// AnnotationSealAcknowledged on a VirtualMachineTemplateImport, VirtualMachineTemplateExport or VirtualMachineTemplateRequest with
// the value "true" acknowledges that its disks are not sealed, or not known to be: the condition Sealed has the reason Acknowledged.
const AnnotationSealAcknowledged = "template.kubevirt.io/seal-acknowledged"

// Annotations for the objects of a template besides the VirtualMachine, which are created after the VirtualMachine.
const (
	// AnnotationPendingObjects on a VirtualMachine holds its objects that do not exist yet, encrypted. The render webhook writes it and
	// discards a value that users send; it is removed when the objects exist.
	AnnotationPendingObjects = "objects.template.kubevirt.io/pending"

	// AnnotationHold in spec.template of a VirtualMachine exists for as long as AnnotationPendingObjects. The VirtualMachineInstance inherits
	// it, and an admission policy denies the creation of an instance that has it: a VirtualMachine does not start without its objects.
	AnnotationHold = "objects.template.kubevirt.io/hold"

	// LabelObjectOwner on an object holds the UID of the VirtualMachine that it was created for.
	LabelObjectOwner = "objects.template.kubevirt.io/owner"
)
