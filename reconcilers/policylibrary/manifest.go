package policylibrary

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/reconcilers/internal/policyapply"
)

const (
	// Label is on every policy that is applied; its value is the name of the ConfigMap.
	Label = "stencil.kubevirt.io/policy-library"
	// digestAnnotation holds the digest of the manifest that a policy was applied from.
	digestAnnotation = "stencil.kubevirt.io/policy-library-digest"
)

// manifestsOf reads the ConfigMap, in the order of its keys. Manifests that cannot be read are left out and reported.
func manifestsOf(configMap *corev1.ConfigMap) (manifests []policyapply.Manifest, problems []error) {
	for _, key := range slices.Sorted(maps.Keys(configMap.Data)) {
		one, err := readManifest(key, configMap)
		if err != nil {
			problems = append(problems, fmt.Errorf("reading %s of ConfigMap %s: %w", key, configMap.Name, err))
			continue
		}
		manifests = append(manifests, one)
	}
	return manifests, problems
}

func readManifest(key string, configMap *corev1.ConfigMap) (policyapply.Manifest, error) {
	raw, err := yaml.YAMLToJSON([]byte(configMap.Data[key]))
	if err != nil {
		return policyapply.Manifest{}, fmt.Errorf("decoding the manifest: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return policyapply.Manifest{}, fmt.Errorf("decoding the manifest: %w", err)
	}
	if object.GroupVersionKind() != policyapply.Kind {
		return policyapply.Manifest{}, fmt.Errorf("it holds a %s", object.GroupVersionKind())
	}
	if object.GetName()+".yaml" != key {
		return policyapply.Manifest{}, fmt.Errorf("it holds a policy called %q", object.GetName())
	}
	sum := sha256.Sum256(raw)
	digest := hex.EncodeToString(sum[:])
	return policyapply.Manifest{Name: object.GetName(), Digest: digest, Object: object}, nil
}
