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

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

const (
	// Label is on every policy that is applied; its value is the name of the ConfigMap.
	Label = "stencil.kubevirt.io/policy-library"
	// digestAnnotation holds the digest of the manifest that a policy was applied from.
	digestAnnotation = "stencil.kubevirt.io/policy-library-digest"
)

var kind = v1alpha1.GroupVersion.WithKind("VirtualMachinePolicy")

// manifest is a policy to apply.
type manifest struct {
	enabled
	object *unstructured.Unstructured
}

// manifestsOf reads the ConfigMap, in the order of its keys. Manifests that cannot be read are left out and reported.
func manifestsOf(configMap *corev1.ConfigMap) (manifests []manifest, problems []error) {
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

func readManifest(key string, configMap *corev1.ConfigMap) (manifest, error) {
	raw, err := yaml.YAMLToJSON([]byte(configMap.Data[key]))
	if err != nil {
		return manifest{}, fmt.Errorf("decoding the manifest: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return manifest{}, fmt.Errorf("decoding the manifest: %w", err)
	}
	if object.GroupVersionKind() != kind {
		return manifest{}, fmt.Errorf("it holds a %s", object.GroupVersionKind())
	}
	if object.GetName()+".yaml" != key {
		return manifest{}, fmt.Errorf("it holds a policy called %q", object.GetName())
	}
	sum := sha256.Sum256(raw)
	digest := hex.EncodeToString(sum[:])
	object.SetLabels(with(object.GetLabels(), Label, configMap.Name))
	object.SetAnnotations(with(object.GetAnnotations(), digestAnnotation, digest))
	return manifest{enabled: enabled{name: object.GetName(), digest: digest}, object: object}, nil
}

func with(entries map[string]string, key, value string) map[string]string {
	if entries == nil {
		entries = map[string]string{}
	}
	entries[key] = value
	return entries
}
