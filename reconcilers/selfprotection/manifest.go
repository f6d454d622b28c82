package selfprotection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// kinds are the kinds that can be protected.
var kinds = []string{
	"MutatingWebhookConfiguration",
	"ValidatingWebhookConfiguration",
	"ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding",
}

// releaseAnnotations is the prefix of the annotations by which Helm identifies the objects of a release. Helm adds them at the
// installation, so they are in no manifest; they are copied from the ConfigMap.
const releaseAnnotations = "meta.helm.sh/"

// RequiresAnnotation is the annotation of a manifest that names a ConfigMap of the release's namespace. Only the manager creates the
// object, as soon as the ConfigMap exists: the binding of a policy that reads it.
const RequiresAnnotation = "stencil.kubevirt.io/requires-configmap"

// AuthorityAnnotation is the annotation of a webhook configuration that names a ValidatingWebhookConfiguration. Helm installs the configuration without
// webhooks. The manager adds them with the caBundle of the named configuration, as soon as it has one, so that no webhook exists that fails closed and
// that the API server cannot call.
const AuthorityAnnotation = "stencil.kubevirt.io/authority-of"

// ReportedKindsAnnotation is the annotation of the ConfigMap that lists, separated by commas, kinds of objects that are not restored: their
// changes are reported.
const ReportedKindsAnnotation = "stencil.kubevirt.io/reported-kinds"

// identity names an object.
type identity struct{ kind, name string }

// String returns the identity as kubectl prints it.
func (i identity) String() string { return i.kind + "/" + i.name }

// key returns the object's key in the ConfigMap.
func (i identity) key() string { return i.kind + "." + i.name + ".yaml" }

// empty returns an empty object of that identity.
func (i identity) empty() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(i.kind))
	object.SetName(i.name)
	return object
}

// manifest is one protected object.
type manifest struct {
	identity
	// object must not be changed.
	object *unstructured.Unstructured
	// digest identifies the content.
	digest string
	// requires is the name of the ConfigMap without which the object is not created; empty if there is none.
	requires string
	// authorityOf is the name of the configuration of which webhooks get the caBundle when the manager adds them; empty if Helm installs them.
	authorityOf string
	// authority is that caBundle, if it was needed and exists.
	authority any
	// reported is set for objects that are reported and not restored.
	reported bool
}

// manifestsOf reads the ConfigMap, in the order of its keys. Webhooks get the caBundle, unless it is nil. Manifests that cannot be read are left out
// and reported.
func manifestsOf(configMap *corev1.ConfigMap, caBundle any) (manifests []manifest, problems []error) {
	for _, key := range slices.Sorted(maps.Keys(configMap.Data)) {
		one, err := readManifest(key, configMap.Data[key], configMap.Annotations, caBundle)
		if err != nil {
			problems = append(problems, fmt.Errorf("reading %s: %w", key, err))
			continue
		}
		manifests = append(manifests, one)
	}
	return manifests, problems
}

func readManifest(key, text string, release map[string]string, caBundle any) (manifest, error) {
	tree := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		return manifest{}, fmt.Errorf("decoding the manifest: %w", err)
	}
	object := &unstructured.Unstructured{Object: tree}
	who := identity{object.GetKind(), object.GetName()}
	if object.GetAPIVersion() != admissionregistrationv1.SchemeGroupVersion.String() || !slices.Contains(kinds, who.kind) {
		return manifest{}, fmt.Errorf("%s %s is none of the kinds that are protected", object.GetAPIVersion(), who.kind)
	}
	if who.key() != key {
		return manifest{}, fmt.Errorf("it holds %s, whose key would be %s", who, who.key())
	}
	for name, value := range release {
		if strings.HasPrefix(name, releaseAnnotations) {
			setAnnotation(object, name, value)
		}
	}
	for _, webhook := range webhooksOf(object) {
		if clientConfig, ok := webhook["clientConfig"].(map[string]any); ok && caBundle != nil {
			clientConfig["caBundle"] = caBundle
		}
	}
	raw, err := object.MarshalJSON() // sorts keys
	if err != nil {
		return manifest{}, fmt.Errorf("encoding the manifest: %w", err)
	}
	// Numbers are decoded again as the API machinery decodes them.
	canonical := &unstructured.Unstructured{}
	if err := canonical.UnmarshalJSON(raw); err != nil {
		return manifest{}, fmt.Errorf("decoding the manifest: %w", err)
	}
	sum := sha256.Sum256(raw)
	return manifest{
		identity: who, object: canonical, digest: hex.EncodeToString(sum[:]), requires: canonical.GetAnnotations()[RequiresAnnotation],
		authorityOf: canonical.GetAnnotations()[AuthorityAnnotation],
		reported:    slices.Contains(strings.Split(release[ReportedKindsAnnotation], ","), who.kind),
	}, nil
}

// addsWebhooks reports whether the manager adds the webhooks of a stored configuration that has none.
func (m manifest) addsWebhooks(stored *unstructured.Unstructured) bool {
	return m.authorityOf != "" && len(webhooksOf(stored)) == 0
}

func setAnnotation(object *unstructured.Unstructured, name, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	object.SetAnnotations(annotations)
}
