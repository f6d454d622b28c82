package authority

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/vmstencil/stencil/internal/certificates/bundle"
)

// leaf is a serving certificate that this replica has signed for itself.
type leaf struct {
	certificate *tls.Certificate
	x509        *x509.Certificate
}

func newLeaf(certificate *tls.Certificate) (*leaf, error) {
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("reading a serving certificate: %w", err)
	}
	return &leaf{certificate: certificate, x509: parsed}, nil
}

// issuedBy reports whether the authority signed the leaf and may still vouch for it.
func (l *leaf) issuedBy(authority *x509.Certificate, now time.Time) bool {
	return bundle.ValidAt(authority, now) && l.x509.CheckSignatureFrom(authority) == nil
}

// serial identifies the leaf in logs.
func (l *leaf) serial() string {
	return l.x509.SerialNumber.Text(16)
}
