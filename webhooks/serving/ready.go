package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// handshakeTimeout is the timeout of the server's TLS handshake with itself.
const handshakeTimeout = 3 * time.Second

var errDraining = errors.New("shutting down")

// Ready is a healthz.Checker: it makes a TLS handshake with the server's own listener and checks whether the
// certificate is valid now. It fails after Drain.
func (s *Server) Ready(request *http.Request) error {
	if s.draining.Load() {
		return errDraining
	}
	ctx, cancel := context.WithTimeout(request.Context(), handshakeTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Nothing is sent on this connection and no response is trusted. The certificate source is responsible for the API
		// server's trust in the certificate.
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
