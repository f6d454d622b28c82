package selfprotection

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestAClusterRoleHoldsTheManifests reads the release that virt-operator has installed.
func TestAClusterRoleHoldsTheManifests(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionregistrationv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "protected", UID: "1", Annotations: map[string]string{ManifestsAnnotation: "a.yaml: one\nb.yaml: two\n"}}}
	trust := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "trust"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "w"}}}
	reconciler := func(objects ...client.Object) *Reconciler {
		return &Reconciler{options: Options{ClusterRole: "protected", Trust: "trust", Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}}
	}

	found, err := reconciler(role).readRelease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if data := found.configMap.Data; len(data) != 2 || data["b.yaml"] != "two" {
		t.Errorf("manifests %v", data)
	}
	if found.owner == nil || found.owner.Name != "protected" || found.owner.UID != "1" || found.manager != fieldManager {
		t.Errorf("owner %+v, field manager %q", found.owner, found.manager)
	}
	if found, err := reconciler().readRelease(t.Context()); err != nil || found.configMap != nil {
		t.Errorf("without the ClusterRole: %+v, %v", found, err)
	}

	if _, err := reconciler(trust).trusted(t.Context()); err == nil || !strings.Contains(err.Error(), "trust has no caBundle yet") {
		t.Errorf("before virt-operator has written it: %v", err)
	}
	trust.Webhooks[0].ClientConfig.CABundle = []byte("CA")
	if got, err := reconciler(trust).trusted(t.Context()); err != nil || got != "Q0E=" {
		t.Errorf("caBundle %v, %v", got, err)
	}
}
