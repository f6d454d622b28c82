package chart

import (
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// knowCertManager installs the definitions of cert-manager.
func knowCertManager(t *testing.T, plane *controlplane.Plane) {
	t.Helper()
	if err := plane.InstallCertManagerCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestCertManagerAcceptsTheIssuersAndCertificates(t *testing.T) {
	plane := shared.Plane(t)
	knowCertManager(t, plane)
	installed(t, install.Options{Values: map[string]any{"certificates": map[string]any{"provider": "cert-manager"}}})

	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	// The definitions prune unknown fields, so the object that is read back has the fields that cert-manager receives.
	var certificate certmanagerv1.Certificate
	object, err := client.Resource(certmanagerv1.SchemeGroupVersion.WithResource("certificates")).Namespace(install.Namespace).
		Get(t.Context(), "stencil-webhook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &certificate, true); err != nil {
		t.Fatal(err)
	}
	if got := certificate.Spec.IssuerRef.Name; got != "stencil-webhook-authority" {
		t.Errorf("the serving certificate is issued by %q", got)
	}
	if got := certificate.Spec.Usages; len(got) != 2 || got[0] != certmanagerv1.UsageDigitalSignature || got[1] != certmanagerv1.UsageServerAuth {
		t.Errorf("the serving certificate has usages %v", got)
	}

	// What cert-manager's CA injector writes is unchanged after an upgrade of the release.
	const bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"
	setBundle(t, plane, "cert-manager-cainjector", bundle)
	if err := install.Chart(t.Context(), plane, install.Options{Values: map[string]any{
		"certificates": map[string]any{"provider": "cert-manager", "certManager": map[string]any{"duration": "48h", "renewBefore": "12h"}},
	}}); err != nil {
		t.Fatal(err)
	}
	wantBundle(t, plane, bundle)
}
