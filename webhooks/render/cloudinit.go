package render

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

// cloudInitData are the fields with data in a cloud-init source of a volume, and the field that refers to a Secret instead.
var cloudInitData = []struct{ data, reference string }{
	{"userData", "secretRef"},
	{"userDataBase64", "secretRef"},
	{"networkData", "networkDataSecretRef"},
	{"networkDataBase64", "networkDataSecretRef"},
}

// inlined returns a cause for user-specified data of cloud-init where the template has a Secret. KubeVirt takes only one of
// both, and the data would stand in the VM.
func inlined(base, requested map[string]any) (causes field.ErrorList) {
	at := mutation.Pointer{"template", "spec", "volumes"}
	fromTemplate, _ := lookup(base, at).([]any)
	byUser, _ := lookup(requested, at).([]any)
	for i, item := range byUser {
		same := slices.IndexFunc(fromTemplate, func(other any) bool {
			return overrides.NameOf(other) != "" && overrides.NameOf(other) == overrides.NameOf(item)
		})
		if same < 0 {
			continue
		}
		volume, _ := fromTemplate[same].(map[string]any)
		own, _ := item.(map[string]any)
		for _, source := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
			for _, f := range cloudInitData {
				if lookup(volume, mutation.Pointer{source, f.reference}) != nil && lookup(own, mutation.Pointer{source, f.data}) != nil {
					causes = append(causes, field.Forbidden(field.NewPath("spec", "template", "spec", "volumes").Index(i).Child(source, f.data),
						"the template has it in a Secret, and KubeVirt takes only one of both: write it into a Secret of yours, and name that in "+f.reference))
				}
			}
		}
	}
	return causes
}
