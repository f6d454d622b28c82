package approval

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	contract "github.com/vmstencil/stencil/api/template"
)

// section is a part of a VirtualMachine that is judged.
type section struct {
	path  Path
	value any
	// skip tells the keys of the section that are not judged.
	skip func(key string) bool
}

// sections takes a VirtualMachine apart. Everything at its top is judged, also
// what is unknown, but for its kind, its status, and the metadata that is not a
// label or an annotation: names are what a person chooses, and the rest is kept by
// controllers and the API server.
func sections(object map[string]any) []section {
	metadata, _ := object["metadata"].(map[string]any)
	parts := []section{
		{path: Path{Field("metadata"), Field("labels")}, value: metadata["labels"], skip: isContractLabel},
		{path: Path{Field("metadata"), Field("annotations")}, value: metadata["annotations"], skip: isContractAnnotation},
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

func isContractAnnotation(key string) bool {
	return key == contract.AnnotationTemplateRef || key == contract.AnnotationRendered ||
		key == contract.AnnotationCreatedBy || key == contract.AnnotationBoundValues ||
		key == contract.AnnotationDefaultsApplied || key == contract.AnnotationDefaultsFailed ||
		key == corev1.LastAppliedConfigAnnotation || strings.HasPrefix(key, contract.AnnotationParameterPrefix)
}

// plainMaps are the maps whose being there, without anything in them, means nothing
// to KubeVirt: its types hold them by value, so that a client written in Go sends
// them always, or they are maps of strings. Of any other map, {} may be a choice, as
// in interfaces[name=default].masquerade or devices.tpm.
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
