package clientcas

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

func authority(t *testing.T, name string) (string, *x509.Certificate) {
	t.Helper()
	encoded, _, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := cert.ParseCertsPEM(encoded)
	if err != nil {
		t.Fatal(err)
	}
	// The certificate of the authority follows the one that it has signed.
	return string(encoded), parsed[len(parsed)-1]
}

func TestReadyWhenAllAuthoritiesAreRequested(t *testing.T) {
	usersPEM, users := authority(t, "users")
	proxiesPEM, proxies := authority(t, "proxies")
	leaf := func(encoded string) *x509.Certificate {
		parsed, err := cert.ParseCertsPEM([]byte(encoded))
		if err != nil {
			t.Fatal(err)
		}
		return parsed[0]
	}
	var requested atomic.Pointer[x509.CertPool]
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{ClientAuth: tls.RequestClientCert, ClientCAs: requested.Load(), Certificates: server.TLS.Certificates}, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)

	var published corev1.ConfigMap
	var failure error
	check := New(server.Listener.Addr(), func(context.Context) (*corev1.ConfigMap, error) { return &published, failure })
	try := func(want string) {
		t.Helper()
		err := check.Check(httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	serve := func(certificates ...*x509.Certificate) {
		pool := x509.NewCertPool()
		for _, certificate := range certificates {
			pool.AddCert(certificate)
		}
		requested.Store(pool)
	}

	failure = errors.New("no connection")
	try("reading ConfigMap kube-system/extension-apiserver-authentication: no connection")
	failure = nil
	published.Data = map[string]string{"client-ca-file": "none"}
	try("ConfigMap kube-system/extension-apiserver-authentication, client-ca-file: ")
	published.Data = map[string]string{"client-ca-file": usersPEM, "requestheader-client-ca-file": proxiesPEM}
	serve()
	try("client-ca-file of ConfigMap kube-system/extension-apiserver-authentication, are not requested yet")
	serve(users, leaf(usersPEM))
	try("requestheader-client-ca-file of ConfigMap kube-system/extension-apiserver-authentication, are not requested yet")
	serve(proxies, leaf(proxiesPEM))
	try("client-ca-file of ConfigMap")
	serve(users, leaf(usersPEM), proxies, leaf(proxiesPEM))
	try("")
	// The first success counts.
	failure = errors.New("no connection")
	try("")
}

func TestNoAuthoritiesAndNoServer(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	none := func(context.Context) (*corev1.ConfigMap, error) { return &corev1.ConfigMap{}, nil }
	request := httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody)
	if err := New(server.Listener.Addr(), none).Check(request); err != nil {
		t.Errorf("a cluster without authorities: %v", err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := New(closed.Addr(), none).Check(request); err == nil || !strings.HasPrefix(err.Error(), "connecting to this server: ") {
		t.Errorf("a server that is closed: %v", err)
	}
}
