package bundle

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"time"
)

const blockType = "CERTIFICATE"

// Parse returns the certificates of a bundle in their order. Anything that is not a readable certificate is skipped: a bundle may have been edited by
// hand, and one bad block in it must not hide the others.
func Parse(data []byte) []*x509.Certificate {
	var certificates []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return certificates
		}
		if block.Type != blockType {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			certificates = append(certificates, certificate)
		}
	}
}

// Encode returns the PEM bundle of the given certificates. Equal certificates in equal order give equal bytes.
func Encode(certificates []*x509.Certificate) []byte {
	var buffer bytes.Buffer
	for _, certificate := range certificates {
		// Writing to a bytes.Buffer does not fail, and there are no headers that could be malformed.
		_ = pem.Encode(&buffer, &pem.Block{Type: blockType, Bytes: certificate.Raw})
	}
	return buffer.Bytes()
}

// Contains reports whether certificates contains the given one.
func Contains(certificates []*x509.Certificate, certificate *x509.Certificate) bool {
	for _, candidate := range certificates {
		if candidate.Equal(certificate) {
			return true
		}
	}
	return false
}

// Expired reports whether the validity of the certificate is over at the given time.
func Expired(certificate *x509.Certificate, now time.Time) bool {
	return now.After(certificate.NotAfter)
}

// ValidAt reports whether the given time lies in the validity of the certificate.
func ValidAt(certificate *x509.Certificate, now time.Time) bool {
	return !now.Before(certificate.NotBefore) && !Expired(certificate, now)
}
