package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificateLife is longer than any test or demo runs.
const certificateLife = 7 * 24 * time.Hour

// Certificate is a certificate with its key and the authority that signed it, each in PEM.
type Certificate struct {
	Certificate, Key, Authority []byte
}

// authority signs certificates. Its key leaves the process for another one of the same test run only; see Attachment.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template := certificateTemplate(pkix.Name{CommonName: name})
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading %s back: %w", name, err)
	}
	return &authority{certificate: certificate, key: key, pem: encodeCertificate(der)}, nil
}

// client signs a certificate that Kubernetes reads as a user and its groups.
func (a *authority) client(user string, groups ...string) (*Certificate, error) {
	template := certificateTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// server signs a certificate for hosts, which are names or IP addresses.
func (a *authority) server(hosts ...string) (*Certificate, error) {
	template := certificateTemplate(pkix.Name{CommonName: hosts[0]})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of %s: %w", template.Subject.CommonName, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &Certificate{Certificate: encodeCertificate(der), Key: encoded, Authority: a.pem}, nil
}

func certificateTemplate(subject pkix.Name) *x509.Certificate {
	// 127 random bits: unique, positive, and within the 20 bytes RFC 5280 allows.
	serial := new(big.Int).SetBytes(randomBytes(16))
	serial.SetBit(serial, 127, 0)
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		// A minute earlier, for clocks that are read on other CPUs.
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(certificateLife),
		BasicConstraintsValid: true,
	}
}

// randomBytes never fails: crypto/rand ends the program rather than return an error.
func randomBytes(n int) []byte {
	random := make([]byte, n)
	_, _ = rand.Read(random)
	return random
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// ServingCertificate signs a serving certificate for a process that the API server is to call, a webhook for instance. Hosts are
// names or IP addresses, at least one.
func (p *Plane) ServingCertificate(hosts ...string) (*Certificate, error) {
	return p.servers.server(hosts...)
}

// store writes the certificate to pki/NAME.crt and its key to pki/NAME.key, and returns both paths.
func (c *Certificate) store(f *folder, name string) (certificate, key string, err error) {
	if certificate, err = f.write(c.Certificate, "pki", name+".crt"); err != nil {
		return "", "", err
	}
	key, err = f.write(c.Key, "pki", name+".key")
	return certificate, key, err
}
