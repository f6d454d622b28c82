// Package clientcas reports whether a server of k8s.io/apiserver requests the client certificates of its cluster. Such a server loads the authorities of
// clients after it has begun to serve. Until then clients send no certificate, and are anonymous.
package clientcas

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// Name and namespace of the ConfigMap in which kube-apiserver publishes the authorities: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
const (
	ConfigMap = "extension-apiserver-authentication"
	Namespace = "kube-system"
)

// keys of the ConfigMap contain authorities of clients. A cluster may have either, both or none.
var keys = [...]string{"client-ca-file", "requestheader-client-ca-file"}

// Check is a healthz.HealthChecker.
type Check struct {
	address net.Addr
	read    func(context.Context) (*corev1.ConfigMap, error)
	passed  atomic.Bool
}

// New returns a check that passes when the server that listens at the address requests certificates of all authorities in the ConfigMap that read returns.
// After that it always passes: the server reloads authorities that change within moments.
func New(address net.Addr, read func(context.Context) (*corev1.ConfigMap, error)) *Check {
	return &Check{address: address, read: read}
}

// Name implements healthz.HealthChecker.
func (*Check) Name() string { return "client-authorities" }

// Check implements healthz.HealthChecker.
func (c *Check) Check(request *http.Request) error {
	if c.passed.Load() {
		return nil
	}
	published, err := c.read(request.Context())
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", Namespace, ConfigMap, err)
	}
	requested, err := c.requested(request.Context())
	if err != nil {
		return fmt.Errorf("connecting to this server: %w", err)
	}
	for _, key := range keys {
		if published.Data[key] == "" {
			continue
		}
		authorities, err := cert.ParseCertsPEM([]byte(published.Data[key]))
		if err != nil {
			return fmt.Errorf("ConfigMap %s/%s, %s: %w", Namespace, ConfigMap, key, err)
		}
		for _, authority := range authorities {
			if !requested[string(authority.RawSubject)] {
				return fmt.Errorf("certificates of authority %q, %s of ConfigMap %s/%s, are not requested yet", authority.Subject, key, Namespace, ConfigMap)
			}
		}
	}
	c.passed.Store(true)
	return nil
}

// requested returns the subjects of the authorities that the server names when it requests a certificate.
func (c *Check) requested(ctx context.Context) (map[string]bool, error) {
	subjects := map[string]bool{}
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // Nothing is sent and no answer is read. The server may have no certificate yet.
		GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for _, subject := range request.AcceptableCAs {
				subjects[string(subject)] = true
			}
			return &tls.Certificate{}, nil
		},
	}}
	connection, err := dialer.DialContext(ctx, c.address.Network(), c.address.String())
	if err != nil {
		return nil, err
	}
	return subjects, connection.Close()
}
