package certificates_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/manager"
)

// apiServerCertificate is the client certificate with which the API server of this package calls webhooks; it is its own authority.
var apiServerCertificate []byte

// callerArguments makes the certificate in a folder, and returns the flags with which an API server uses it for webhooks.
func callerArguments(folder string) ([]string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	apiServerCertificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	path := func(name string) string { return filepath.Join(folder, name) }
	plugin := "{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: " + path("kubeconfig") + "}"
	for name, content := range map[string][]byte{
		"tls.crt": apiServerCertificate,
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
		"kubeconfig": []byte("apiVersion: v1\nkind: Config\nusers:\n- name: '*'\n  user: {client-certificate: " + path("tls.crt") +
			", client-key: " + path("tls.key") + "}\n"),
		"admission.yaml": []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n" +
			"- name: MutatingAdmissionWebhook\n  configuration: " + plugin + "\n- name: ValidatingAdmissionWebhook\n  configuration: " + plugin + "\n"),
	} {
		if err := os.WriteFile(path(name), content, 0o600); err != nil {
			return nil, fmt.Errorf("writing the client certificate of the API server: %w", err)
		}
	}
	return []string{"--admission-control-config-file=" + path("admission.yaml")}, nil
}

// TestOnlyTheAPIServerIsAnswered tests a manager with configured names and authority of client certificates.
func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	shared.Plane(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, apiServerCertificate, 0o600); err != nil {
		t.Fatal(err)
	}
	process := launch(t, manager.Options{Args: []string{"--webhook-client-ca-file=" + file, "--webhook-client-names=kube-apiserver"}})
	// The API server gets answers: the template is validated, and a VirtualMachine is rendered from it.
	ensureTemplate(t)

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	review := []byte(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1"}}`)
	for _, path := range []string{"/mutate-virtualmachine-render", "/validate-virtualmachine", "/nowhere"} {
		answer, err := client.Post(process.WebhookURL()+path, "application/json", bytes.NewReader(review))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s answers somebody without a certificate with %s", path, answer.Status)
		}
	}
}
