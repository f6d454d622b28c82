// Package servingcert provides a certificate of package certificates to a server of k8s.io/apiserver, which requires it as PEM and a notification
// when it changes.
package servingcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
)

// interval is how often to check whether the source has another certificate: it sends no notification.
const interval = 200 * time.Millisecond

// Source is where the certificate comes from; a certificates.Source is one.
type Source interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Provider implements dynamiccertificates.CertKeyContentProvider and ControllerRunner.
type Provider struct {
	source Source

	mutex            sync.Mutex
	last             *tls.Certificate
	certificate, key []byte
	listeners        []dynamiccertificates.Listener
}

var (
	_ dynamiccertificates.CertKeyContentProvider = (*Provider)(nil)
	_ dynamiccertificates.ControllerRunner       = (*Provider)(nil)
)

// New returns a Provider of the certificate of a source. Until that has one, the provider has a certificate that no client trusts: without any, the server
// would log an error several times a second, and a probe would not find out why it is not ready.
func New(source Source) (*Provider, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate until there is one: %w", err)
	}
	return &Provider{source: source, certificate: certificate, key: key}, nil
}

// Name implements dynamiccertificates.CertKeyContentProvider.
func (*Provider) Name() string { return "stencil-serving-certificate" }

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (p *Provider) CurrentCertKeyContent() (certificate, key []byte) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.certificate, p.key
}

// AddListener implements dynamiccertificates.Notifier.
func (p *Provider) AddListener(listener dynamiccertificates.Listener) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.listeners = append(p.listeners, listener)
}

// RunOnce implements dynamiccertificates.ControllerRunner: it reads the present certificate.
func (p *Provider) RunOnce(context.Context) error {
	current, err := p.source.GetCertificate(nil)
	if err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if current == p.last {
		return nil
	}
	certificate, key, err := encode(current)
	if err != nil {
		return err
	}
	p.last, p.certificate, p.key = current, certificate, key
	for _, listener := range p.listeners {
		listener.Enqueue()
	}
	return nil
}

// Run implements dynamiccertificates.ControllerRunner. While the source has no certificate, or one that cannot be read, the previous one stays.
func (p *Provider) Run(ctx context.Context, _ int) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		_ = p.RunOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func encode(pair *tls.Certificate) (certificate, key []byte, err error) {
	for _, der := range pair.Certificate {
		certificate = append(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key of the serving certificate: %w", err)
	}
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
