package certificates

import (
	"context"
	"crypto/tls"
	"net/http"
)

// Source supplies the serving certificate of the webhooks. It is a manager.Runnable that runs on every replica.
type Source interface {
	// GetCertificate returns the certificate to serve, for tls.Config. It is called on every handshake, takes no
	// longer than reading memory, and fails as long as there is no certificate.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Start obtains certificates and renews them until ctx ends.
	Start(ctx context.Context) error
	// NeedLeaderElection returns false.
	NeedLeaderElection() bool
	// Ready is a healthz.Checker. It fails until the source has a certificate that API servers accept.
	Ready(*http.Request) error
}
