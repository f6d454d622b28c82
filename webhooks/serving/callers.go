package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
)

// Callers says who may call the webhooks. The zero value lets everybody.
//
// An API server has no client certificate for webhooks unless it is given one, in
// the kubeConfigFile of its AdmissionConfiguration; that is why this is a choice.
type Callers struct {
	// AuthorityFile is a PEM file of the authorities whose client certificates are
	// taken. It is read for every connection, so that it may be replaced at any time;
	// while it cannot be read, nobody connects.
	AuthorityFile string
	// Names are common names; one of them must be the certificate's. Without any,
	// every certificate of the authorities is taken.
	Names []string
}

// restrict makes a TLS configuration verify the certificates of callers. One that
// has none may connect, for the readiness check does, and is refused by admit.
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
		// A session that is resumed would outlive the authority.
		one.SessionTicketsDisabled = true
		return one, nil
	}
	return restricted
}

// admit serves those callers only that may call.
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
