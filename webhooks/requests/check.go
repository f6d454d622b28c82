package requests

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// check returns the errors in the fields of a request.
func check(object *v1beta1.VirtualMachineTemplateRequest) field.ErrorList {
	spec := field.NewPath("spec")
	causes := validReference(object.Spec.VirtualMachineRef)
	if name := object.Spec.TemplateName; name != "" {
		for _, wrong := range validation.IsDNS1123Subdomain(name) {
			causes = append(causes, field.Invalid(spec.Child("templateName"), name, wrong))
		}
	}
	causes = append(causes, metav1validation.ValidateLabels(object.Spec.TemplateLabels, spec.Child("templateLabels"))...)
	return append(causes, validObjects(object.Spec.Objects, spec.Child("objects"))...)
}

// validObjects returns the errors of objects that cannot be captured. It shows none of their content.
func validObjects(objects []runtime.RawExtension, path *field.Path) (causes field.ErrorList) {
	for i := range objects {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(objects[i].Raw, &object); err != nil {
			causes = append(causes, field.Invalid(path.Index(i), field.OmitValueType{}, "is no object"))
			continue
		}
		if kind := object.Kind; object.APIVersion != "v1" || kind != "Service" && kind != "Secret" {
			causes = append(causes, field.Forbidden(path.Index(i), "only Services and Secrets are captured, in apiVersion v1"))
		}
		if object.Name == "" {
			causes = append(causes, field.Required(path.Index(i).Child("metadata", "name"), ""))
		}
	}
	return causes
}

// validReference returns the errors of a reference that cannot name any VirtualMachine.
func validReference(source v1beta1.VirtualMachineReference) (causes field.ErrorList) {
	path := field.NewPath("spec", "virtualMachineRef")
	for _, part := range []struct {
		name, value string
		valid       func(string) []string
	}{
		{"namespace", source.Namespace, validation.IsDNS1123Label},
		{"name", source.Name, validation.IsDNS1123Subdomain},
	} {
		if part.value == "" {
			causes = append(causes, field.Required(path.Child(part.name), "names the VirtualMachine to be captured"))
			continue
		}
		for _, wrong := range part.valid(part.value) {
			causes = append(causes, field.Invalid(path.Child(part.name), part.value, wrong))
		}
	}
	return causes
}

// templateName returns the name of the requested template.
func templateName(object *v1beta1.VirtualMachineTemplateRequest) string {
	if object.Spec.TemplateName != "" {
		return object.Spec.TemplateName
	}
	return object.Name
}
