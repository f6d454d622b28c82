package approval

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	contract "github.com/vmstencil/stencil/api/template"
)

// section is a part of a VirtualMachine that is evaluated.
type section struct {
	path  Path
	value any
	// skip reports whether a key of the section is not evaluated.
	skip func(key string) bool
}

// sections splits a VirtualMachine into sections. Every field at the top is evaluated, also unknown ones, except kind, status, and the metadata other
// than labels and annotations: users choose names, and controllers and the API server maintain the rest.
func sections(object map[string]any) []section {
	metadata, _ := object["metadata"].(map[string]any)
	parts := []section{
		{path: Path{Field("metadata"), Field("labels")}, value: metadata["labels"], skip: isContractLabel},
		{path: Path{Field("metadata"), Field("annotations")}, value: metadata["annotations"], skip: isIgnoredAnnotation},
	}
	for key, value := range object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			parts = append(parts, section{path: Path{Field(key)}, value: value})
		}
	}
	return parts
}

func isContractLabel(key string) bool {
	return key == contract.LabelTemplate || key == contract.LabelTemplateNamespace || key == contract.LabelTemplateRevision
}

func isIgnoredAnnotation(key string) bool {
	return key == contract.AnnotationTemplateRef || key == contract.AnnotationRendered || key == contract.AnnotationOverrides ||
		key == contract.AnnotationCreatedBy || key == contract.AnnotationBoundValues || key == contract.AnnotationProcessed ||
		key == contract.AnnotationDefaultsApplied || key == contract.AnnotationDefaultsFailed ||
		key == corev1.LastAppliedConfigAnnotation || strings.HasPrefix(key, contract.AnnotationParameterPrefix)
}

// plainMaps are the maps that have no meaning for KubeVirt when they are empty: its types hold them by value, so that clients written in Go always
// send them, or they are maps of strings. Any other empty map may be a choice, as in interfaces[name=default].masquerade or devices.tpm.
var plainMaps = []string{
	"metadata.labels",
	"metadata.annotations",
	"spec.template.metadata",
	"spec.template.metadata.labels",
	"spec.template.metadata.annotations",
	"spec.template.spec",
	"spec.template.spec.nodeSelector",
	"spec.template.spec.domain",
	"spec.template.spec.domain.devices",
	"spec.template.spec.domain.features.acpi",
	"spec.template.spec.domain.resources",
	"spec.template.spec.domain.resources.limits",
	"spec.template.spec.domain.resources.requests",
	"spec.dataVolumeTemplates[*].metadata",
	"spec.dataVolumeTemplates[*].metadata.labels",
	"spec.dataVolumeTemplates[*].metadata.annotations",
	"spec.dataVolumeTemplates[*].spec.pvc.resources",
	"spec.dataVolumeTemplates[*].spec.pvc.resources.limits",
	"spec.dataVolumeTemplates[*].spec.pvc.resources.requests",
	"spec.dataVolumeTemplates[*].spec.storage.resources",
	"spec.dataVolumeTemplates[*].spec.storage.resources.limits",
	"spec.dataVolumeTemplates[*].spec.storage.resources.requests",
}
