package render

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
)

// reference names a VirtualMachineTemplate.
type reference struct{ Namespace, Name string }

func (r reference) String() string { return r.Namespace + "/" + r.Name }

var annotationsPath = field.NewPath("metadata", "annotations")

// parseReference reads NAME or NAMESPACE/NAME; a NAME alone is one in the
// namespace of the request. Nothing is trimmed or folded: a reference that is
// nearly right is wrong, so that two readers of it never disagree.
func parseReference(value, requestNamespace string) (reference, field.ErrorList) {
	path := annotationsPath.Key(contract.AnnotationTemplateRef)
	if value == "" {
		return reference{}, field.ErrorList{field.Required(path, "name a VirtualMachineTemplate as NAME or NAMESPACE/NAME")}
	}
	ref := reference{Namespace: requestNamespace, Name: value}
	if namespace, name, found := strings.Cut(value, "/"); found {
		ref = reference{Namespace: namespace, Name: name}
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
