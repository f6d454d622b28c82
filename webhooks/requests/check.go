package requests

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	permission "github.com/vmstencil/stencil/internal/authorization"
)

// check finds what is wrong with the words of a request.
func check(object *v1beta1.VirtualMachineTemplateRequest) field.ErrorList {
	spec := field.NewPath("spec")
	causes := validReference(object.Spec.VirtualMachineRef)
	if name := object.Spec.TemplateName; name != "" {
		for _, wrong := range validation.IsDNS1123Subdomain(name) {
			causes = append(causes, field.Invalid(spec.Child("templateName"), name, wrong))
		}
	}
	return append(causes, metav1validation.ValidateLabels(object.Spec.TemplateLabels, spec.Child("templateLabels"))...)
}

// validReference finds what keeps a reference from naming any VirtualMachine.
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

// templateName is the name of the template that is asked for.
func templateName(object *v1beta1.VirtualMachineTemplateRequest) string {
	if object.Spec.TemplateName != "" {
		return object.Spec.TemplateName
	}
	return object.Name
}

// right is something that the person has to be allowed.
type right struct {
	action  permission.Action
	refusal string
}

// rights are those that open what can be learnt here, in the words of the policy template-request.
func rights(object *v1beta1.VirtualMachineTemplateRequest) []right {
	source := object.Spec.VirtualMachineRef
	where := source.Namespace + "/" + source.Name
	use := right{
		permission.Action{
			Verb: permission.Get, Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines", Namespace: source.Namespace, Name: source.Name,
		},
		"not allowed to read VirtualMachine " + where + ", which the template would show: ask an administrator of the namespace for verb get on virtualmachines.kubevirt.io",
	}
	if source.Namespace != object.Namespace {
		use = right{
			permission.Action{
				Verb: permission.Create, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version,
				Resource: "virtualmachinetemplaterequests", Subresource: "source", Namespace: source.Namespace, Name: source.Name,
			},
			"not allowed to use VirtualMachine " + where + " as the source of a VirtualMachineTemplateRequest: ask an administrator of its namespace for verb create on virtualmachinetemplaterequests/source",
		}
	}
	return []right{use, {
		permission.Action{
			Verb: permission.Create, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version,
			Resource: "virtualmachinetemplates", Namespace: object.Namespace,
		},
		"not allowed to create VirtualMachineTemplates in namespace " + object.Namespace + ": ask an administrator of the namespace for verb create on virtualmachinetemplates.template.kubevirt.io",
	}}
}
