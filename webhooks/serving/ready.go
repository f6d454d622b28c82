package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// handshakeTimeout is how long the server may take to answer itself.
const handshakeTimeout = 3 * time.Second

var errDraining = errors.New("shutting down")

// Ready is a healthz.Checker: it makes a TLS handshake with the server's own listener and looks whether
// the certificate that comes back is valid now. From Drain on it fails.
func (s *Server) Ready(request *http.Request) error {
	if s.draining.Load() {
		return errDraining
	}
	ctx, cancel := context.WithTimeout(request.Context(), handshakeTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Nothing is sent or believed on this connection. Whether the API server trusts the certificate is
		// for the certificate source to know.
		InsecureSkipVerify: true,
	}}
	connection, err := dialer.DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return fmt.Errorf("shaking hands with the webhook server: %w", err)
	}
	defer func() { _ = connection.Close() }()

	now := s.options.Clock.Now()
	leaf := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return fmt.Errorf("the webhook server's certificate is valid from %s to %s only",
			leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}
