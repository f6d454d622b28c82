package lint

import (
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/template/validations"
)

// Validations returns the problems of the rules in the annotations of a template and of its VirtualMachine, each with its
// row and column in the annotation. Rules with placeholders can be checked only in the rendered VirtualMachine.
func Validations(t *v1beta1.VirtualMachineTemplate) field.ErrorList {
	causes := malformed(t.Annotations[validations.AnnotationTemplate], field.NewPath("metadata", "annotations").Key(validations.AnnotationTemplate))
	var vm struct {
		Metadata struct {
			Annotations map[string]any `json:"annotations"`
		} `json:"metadata"`
	}
	if raw := template.Braces(t).Spec.VirtualMachine; raw == nil || json.Unmarshal(raw.Raw, &vm) != nil {
		return causes
	}
	if text, _ := vm.Metadata.Annotations[validations.Annotation].(string); !strings.Contains(text, "${") {
		causes = append(causes, malformed(text, field.NewPath("spec", "virtualMachine", "metadata", "annotations").Key(validations.Annotation))...)
	}
	return causes
}

func malformed(text string, at *field.Path) field.ErrorList {
	_, err := validations.Parse(text)
	var invalid *validations.InvalidError
	if !errors.As(err, &invalid) {
		return nil
	}
	var causes field.ErrorList
	for _, problem := range invalid.Problems {
		causes = append(causes, field.Invalid(at, field.OmitValueType{}, problem.String()))
	}
	return causes
}
