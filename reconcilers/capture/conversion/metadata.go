package conversion

import (
	"slices"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
)

// bookkeeping are the annotations and labels in which controllers and tools store state of one object. They are not copied to another
// object. An entry that ends in a slash is a prefix.
var bookkeeping = []string{
	contract.AnnotationTemplateRef,
	contract.AnnotationParameterPrefix,
	contract.AnnotationRendered,
	contract.AnnotationOverrides,
	contract.AnnotationCreatedBy,
	contract.AnnotationBoundValues,
	contract.AnnotationProcessed,
	contract.AnnotationDefaultsApplied,
	contract.AnnotationDefaultsFailed,
	contract.LabelTemplate,
	contract.LabelTemplateNamespace,
	contract.LabelTemplateRevision,

	"kubectl.kubernetes.io/",
	"argocd.argoproj.io/",
	"meta.helm.sh/",
	"kustomize.toolkit.fluxcd.io/",
	"helm.toolkit.fluxcd.io/",

	"kubevirt.io/latest-observed-api-version",
	"kubevirt.io/storage-observed-api-version",
	"kubevirt.io/vm-generation",
	"kubevirt.io/keep-launcher-alive-after-failure",
	"kubemacpool.io/",
	"objects.template.kubevirt.io/",
	"restore.kubevirt.io/",
	"snapshot.kubevirt.io/",
	"clone.kubevirt.io/",
}

// ownName are the labels that may contain the name of the VirtualMachine.
var ownName = []string{"kubevirt.io/vm", "kubevirt.io/domain", "vm.kubevirt.io/name"}

func isRetained(key string) bool {
	return !slices.ContainsFunc(bookkeeping, func(entry string) bool {
		return key == entry || strings.HasSuffix(entry, "/") && strings.HasPrefix(key, entry)
	})
}

// metadata returns the part of the metadata that belongs in a template.
func (c *conversion) metadata(metadata map[string]any) map[string]any {
	kept := map[string]any{"name": literal("${NAME}")}
	for _, key := range []string{"labels", "annotations"} {
		if entries := c.entries(metadata[key]); len(entries) > 0 {
			kept[key] = entries
		}
	}
	return kept
}

// templateMetadata does the same to spec.template.metadata, of which KubeVirt reads only labels and annotations.
func (c *conversion) templateMetadata(template map[string]any) {
	metadata, _ := template["metadata"].(map[string]any)
	kept := c.metadata(metadata)
	delete(kept, "name")
	if len(kept) == 0 {
		delete(template, "metadata")
		return
	}
	template["metadata"] = kept
}

// entries returns the labels or annotations without bookkeeping.
func (c *conversion) entries(value any) map[string]any {
	given, _ := value.(map[string]any)
	kept := map[string]any{}
	for key, each := range given {
		switch {
		case !isRetained(key):
		case each == c.source && slices.Contains(ownName, key):
			kept[key] = literal("${NAME}")
		default:
			kept[key] = each
		}
	}
	return kept
}
