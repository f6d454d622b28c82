package takeover_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/vmstencil/stencil/test/harness"
)

// admits stands in for the webhooks of a server of KubeVirt's template component, whose program is not published as a Go module: it admits everything, with
// the certificate that virt-operator has made for it.
func (c *cluster) admits(service, secret string) {
	c.t.Helper()
	var pair tls.Certificate
	harness.Eventually(c.t, "virt-operator has made the Secret "+secret, func() error {
		result, err := c.Kubectl(c.t.Context(), nil, "", "get", "secret", secret, "--namespace=kubevirt", "-o", `jsonpath={.data.tls\.crt} {.data.tls\.key}`)
		if err == nil && result.Code != 0 {
			err = errors.New(result.Stderr)
		}
		if err != nil {
			return err
		}
		certificate, key, _ := strings.Cut(result.Stdout, " ")
		first, err1 := base64.StdEncoding.DecodeString(certificate)
		second, err2 := base64.StdEncoding.DecodeString(key)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		pair, err = tls.X509KeyPair(first, second)
		return err
	})
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
