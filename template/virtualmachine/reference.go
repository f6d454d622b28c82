package virtualmachine

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
)

// Reference is a reference to a VirtualMachineTemplate.
type Reference struct{ Namespace, Name string }

// String returns NAMESPACE/NAME.
func (r Reference) String() string { return r.Namespace + "/" + r.Name }

// AnnotationsPath is the path of the annotations of a VirtualMachine.
var AnnotationsPath = field.NewPath("metadata", "annotations")

// ParseReference reads NAME or NAMESPACE/NAME; a NAME alone is one in the namespace of the request. Nothing is trimmed or
// folded: a reference that is nearly right is wrong, so that all readers interpret it equally.
func ParseReference(value, requestNamespace string) (Reference, field.ErrorList) {
	path := AnnotationsPath.Key(contract.AnnotationTemplateRef)
	if value == "" {
		return Reference{}, field.ErrorList{field.Required(path, "name a VirtualMachineTemplate as NAME or NAMESPACE/NAME")}
	}
	ref := Reference{Namespace: requestNamespace, Name: value}
	if namespace, name, found := strings.Cut(value, "/"); found {
		ref = Reference{Namespace: namespace, Name: name}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(ref.Namespace) {
		errs = append(errs, field.Invalid(path, value, "the namespace part is not a namespace name: "+problem))
	}
	for _, problem := range validation.IsDNS1123Subdomain(ref.Name) {
		errs = append(errs, field.Invalid(path, value, "the name part is not a template name: "+problem))
	}
	return ref, errs
}
