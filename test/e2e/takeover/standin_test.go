package takeover_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/vmstencil/stencil/test/harness"
)

// admits stands in for the webhooks of a server of KubeVirt's template component, whose program is not published as a Go module: it admits everything, with
// the certificate that virt-operator has made for it.
func (c *cluster) admits(service, secret string) {
	c.t.Helper()
	certificate := c.certificate(secret)
	pair, err := tls.X509KeyPair(certificate["tls.crt"], certificate["tls.key"])
	if err != nil {
		c.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, fmt.Sprintf("no AdmissionReview: %v", err), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	c.t.Cleanup(server.Close)
	c.Network().Route("kubevirt", service, server.Listener.Addr().String())
}

// certificate returns the files of a certificate that virt-operator has made for a server, by name.
func (c *cluster) certificate(secret string) map[string][]byte {
	c.t.Helper()
	var stored corev1.Secret
	harness.Eventually(c.t, "virt-operator has made the Secret "+secret, func() error {
		result, err := c.Kubectl(c.t.Context(), nil, "", "get", "secret", secret, "--namespace=kubevirt", "-o", "json")
		if err == nil && result.Code != 0 {
			err = errors.New(result.Stderr)
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(result.Stdout), &stored); err != nil {
			return err
		}
		_, err = tls.X509KeyPair(stored.Data["tls.crt"], stored.Data["tls.key"])
		return err
	})
	return map[string][]byte{"tls.crt": stored.Data["tls.crt"], "tls.key": stored.Data["tls.key"]}
}
