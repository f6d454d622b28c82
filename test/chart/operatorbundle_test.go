package chart

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/install"
)

// operatorKinds are the kinds that virt-operator 1.9 accepts in the bundle of its template component.
var operatorKinds = []string{
	"APIService", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Deployment", "NetworkPolicy", "Role", "RoleBinding", "Service", "ServiceAccount",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
}

// TestBundleForVirtOperator verifies what virt-operator requires of the bundle.
func TestBundleForVirtOperator(t *testing.T) {
	const namespace = "openshift-cnv"
	written := func() (bundle, permissions []byte) {
		paths := [2]string{}
		var err error
		if paths[0], paths[1], err = install.OperatorBundle(t.Context(), t.TempDir(), namespace); err != nil {
			t.Fatal(err)
		}
		for i, into := range []*[]byte{&bundle, &permissions} {
			if *into, err = os.ReadFile(paths[i]); err != nil {
				t.Fatal(err)
			}
		}
		return bundle, permissions
	}
	bundle, permissions := written()
	again, permissionsAgain := written()
	if !bytes.Equal(bundle, again) || !bytes.Equal(permissions, permissionsAgain) {
		t.Error("the second run wrote something else")
	}
	if bytes.Contains(bundle, []byte("helm.sh/")) || bytes.Contains(bundle, []byte("managed-by: Helm")) {
		t.Error("there are marks of Helm in the bundle")
	}

	found := decode(t, string(bundle))
	counted := map[string][]string{}
	for key, object := range found {
		kind, name, _ := strings.Cut(key, "/")
		counted[kind] = append(counted[kind], name)
		if !slices.Contains(operatorKinds, kind) {
			t.Errorf("virt-operator does not read %s", key)
		}
		if in := object.GetNamespace(); in != "" && in != namespace && key != "RoleBinding/virt-template-apiserver-auth-reader" {
			t.Errorf("%s is in namespace %s", key, in)
		}
		for _, path := range []string{"{.spec.caBundle}", "{.webhooks[*].clientConfig.caBundle}"} {
			if found.field(t, key, path) != nil {
				t.Errorf("%s has a certificate", key)
			}
		}
		// stencil-manager would write them as well.
		if kind == "ClusterRoleBinding" && found.field(t, key, "{.subjects}") == nil || kind == "ValidatingWebhookConfiguration" && found.field(t, key, "{.webhooks}") == nil {
			t.Errorf("%s has no content", key)
		}
	}
	for kind, want := range map[string][]string{
		"Deployment": {"virt-template-apiserver", "virt-template-controller"},
		"Service":    {"virt-template-api-service", "virt-template-controller-manager-metrics-service", "virt-template-webhook-service"},
		"APIService": {"v1alpha1.subresources.template.kubevirt.io", "v1beta1.subresources.template.kubevirt.io"},
		"CustomResourceDefinition": {
			"goldenimages.stencil.kubevirt.io", "policyexceptions.stencil.kubevirt.io", "revisionmigrations.stencil.kubevirt.io", "templateapprovals.stencil.kubevirt.io", "virtualmachinepolicies.stencil.kubevirt.io", "virtualmachinepolicysources.stencil.kubevirt.io",
			"virtualmachinetemplateexports.template.kubevirt.io", "virtualmachinetemplateimports.template.kubevirt.io",
			"virtualmachinetemplaterequests.template.kubevirt.io", "virtualmachinetemplates.template.kubevirt.io",
		},
		"ValidatingWebhookConfiguration": {"virt-template-validate"},
	} {
		slices.Sort(counted[kind])
		if diff := cmp.Diff(want, counted[kind]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	for name, want := range map[string]struct {
		container string
		secrets   []string
	}{
		"Deployment/virt-template-apiserver":  {"apiserver", []string{"kubevirt-virt-template-api-certs"}},
		"Deployment/virt-template-controller": {"manager", []string{"kubevirt-virt-template-webhook-certs", "kubevirt-virt-template-controller-metrics-certs"}},
	} {
		for path, value := range map[string]any{
			"{.spec.replicas}": 1, "{.spec.template.spec.containers[*].name}": want.container, "{.spec.template.spec.initContainers}": nil,
		} {
			if diff := cmp.Diff(plain(t, value), plain(t, found.field(t, name, path))); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", name, path, diff)
			}
		}
		secrets := found.field(t, name, "{.spec.template.spec.volumes[*].secret.secretName}")
		if one, ok := secrets.(string); ok {
			secrets = []string{one}
		}
		if diff := cmp.Diff(plain(t, want.secrets), plain(t, secrets)); diff != "" {
			t.Errorf("%s: Secrets (-want +got):\n%s", name, diff)
		}
		// virt-operator writes these labels, or none of them if it has no product: its own tests refuse them in the bundle.
		for _, label := range []string{"part-of", "version", "component"} {
			for _, at := range []string{"", ".spec.template"} {
				if value := found.field(t, name, `{`+at+`.metadata.labels.app\.kubernetes\.io/`+label+`}`); value != nil {
					t.Errorf("%s%s has the label %s: %v", name, at, label, value)
				}
			}
		}
		// virt-operator replaces this label of pods, and a Deployment must select its own.
		if label := found.field(t, name, `{.spec.selector.matchLabels.app\.kubernetes\.io/component}`); label != nil {
			t.Errorf("%s selects pods by a label that virt-operator replaces", name)
		}
	}
	manifests := decode(t, manifestsOf(t, found))
	for _, key := range []string{"MutatingWebhookConfiguration/a-virt-template-render", "MutatingWebhookConfiguration/zz-virt-template-preview", "ValidatingWebhookConfiguration/virt-template-policies"} {
		manifests.get(t, key)
	}
	for key := range manifests {
		if manifests.field(t, key, "{.webhooks[*].clientConfig.caBundle}") != nil {
			t.Errorf("%s has a certificate", key)
		}
		if _, twice := found[key]; twice {
			t.Errorf("both virt-operator and stencil-manager write %s", key)
		}
	}
}

// manifestsOf returns the manifests that stencil-manager creates, as a YAML stream.
func manifestsOf(t *testing.T, bundle objects) string {
	t.Helper()
	text := bundle.get(t, "ClusterRole/virt-template-protected-objects").GetAnnotations()["stencil.kubevirt.io/protected-objects"]
	manifests := map[string]string{}
	if err := yaml.Unmarshal([]byte(text), &manifests); err != nil {
		t.Fatal(err)
	}
	return strings.Join(slices.Collect(maps.Values(manifests)), "\n---\n")
}
