package serving

import (
	"crypto/tls"
	"net/http"
)

// CertificateSource supplies the serving certificate. It is called on every handshake, and the result may change at
// any time.
type CertificateSource interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// tlsConfig returns the TLS configuration of the server.
func tlsConfig(certificates CertificateSource, limit func(*tls.Config)) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: certificates.GetCertificate,
	}
	if limit != nil {
		limit(config)
	}
	return config
}

// protocols returns the HTTP versions of the server. HTTP/2 is optional: one connection can open and cancel streams
// faster than a server can shed them (CVE-2023-44487, CVE-2023-39325), and the API server gains little from it here.
func protocols(http2 bool) *http.Protocols {
	versions := &http.Protocols{}
	versions.SetHTTP1(true)
	versions.SetHTTP2(http2)
	return versions
}
