package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
)

// Callers restricts which clients may call the webhooks. The zero value allows all clients.
//
// An API server has no client certificate for webhooks unless the kubeConfigFile of its AdmissionConfiguration sets
// one. The restriction is therefore optional.
type Callers struct {
	// AuthorityFile is a PEM file of the authorities for client certificates. It is read for every connection, so it may
	// be replaced at any time. While it cannot be read, all connections fail.
	AuthorityFile string
	// Names are the accepted common names of certificates. If empty, every certificate of the authorities is accepted.
	Names []string
}

// restrict makes a TLS configuration verify the certificates of callers. A client without a certificate may connect,
// because the readiness check has none; admit denies its requests.
func (c Callers) restrict(config *tls.Config) *tls.Config {
	if c.AuthorityFile == "" {
		return config
	}
	restricted := config.Clone()
	restricted.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		content, err := os.ReadFile(c.AuthorityFile)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of webhook callers: %w", err)
		}
		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("reading the authorities of webhook callers: %s holds no certificate in PEM", c.AuthorityFile)
		}
		one := config.Clone()
		one.ClientCAs, one.ClientAuth = authorities, tls.VerifyClientCertIfGiven
		// A resumed session would outlive the authority.
		one.SessionTicketsDisabled = true
		return one, nil
	}
	return restricted
}

// admit serves only the callers that are allowed.
func (c Callers) admit(next http.Handler) http.Handler {
	if c.AuthorityFile == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case len(r.TLS.VerifiedChains) == 0:
			http.Error(w, "a client certificate is needed to call this webhook", http.StatusForbidden)
		case len(c.Names) > 0 && !slices.Contains(c.Names, r.TLS.PeerCertificates[0].Subject.CommonName):
			http.Error(w, "this client certificate does not allow to call this webhook", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
