package ova

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Certificate is the signature of a manifest, and the certificate of its key.
type Certificate struct {
	// Chain is the certificate of the signer, and after it other certificates of the file.
	Chain []*x509.Certificate

	file      string
	manifest  string
	hash      crypto.Hash
	signature []byte
}

// parseCertificate parses a certificate file: a line ALGORITHM(MANIFEST)= HEX, and certificates in PEM. Other lines, such as the readable form of
// OpenSSL, are ignored.
func parseCertificate(file string, raw []byte) (*Certificate, error) {
	c := &Certificate{file: file}
	before, _, _ := bytes.Cut(raw, []byte("-----BEGIN"))
	for line := range bytes.Lines(before) {
		text := strings.TrimRight(string(line), "\r\n")
		if !digestLine.MatchString(text) {
			continue
		}
		if c.signature != nil {
			return nil, fail(file, "contains a second signature")
		}
		var err error
		if c.manifest, c.hash, c.signature, err = parseLine(text); err != nil {
			return nil, fail(file, "the signature %v", err)
		}
	}
	if c.signature == nil {
		return nil, fail(file, "contains no signature, a line ALGORITHM(MANIFEST)= HEX before the certificate")
	}
	for rest := raw; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fail(file, "contains a PEM block of type %s; want CERTIFICATE", shown(block.Type))
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fail(file, "contains a malformed certificate: %v", err)
		}
		if c.Chain = append(c.Chain, certificate); len(c.Chain) > MaxCertificates {
			return nil, fail(file, "contains more than %d certificates", MaxCertificates)
		}
	}
	if len(c.Chain) == 0 {
		return nil, fail(file, "contains no certificate")
	}
	return c, nil
}

// verify checks the signature of a manifest, and the signer's certificate.
func (c *Certificate) verify(manifestName string, manifest []byte, roots *x509.CertPool, now time.Time) error {
	if c.manifest != manifestName {
		return fail(c.file, "signs %s, and the manifest is %s", shown(c.manifest), shown(manifestName))
	}
	if c.hash == crypto.SHA1 {
		return fail(c.file, "the signature uses SHA1, which can be forged; sign the OVA again with SHA256")
	}
	key, ok := c.Chain[0].PublicKey.(*rsa.PublicKey)
	if !ok {
		return fail(c.file, "the key of the certificate is not RSA")
	}
	h := c.hash.New()
	_, _ = h.Write(manifest)
	if err := rsa.VerifyPKCS1v15(key, c.hash, h.Sum(nil), c.signature); err != nil {
		return fail(c.file, "the signature does not match the manifest, which was changed or signed by another key")
	}
	intermediates := x509.NewCertPool()
	for _, each := range c.Chain[1:] {
		intermediates.AddCert(each)
	}
	if _, err := c.Chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return &Error{Member: c.file, Message: "the certificate of the signer is not trusted: " + err.Error(), Err: err}
	}
	return nil
}

// Signer signs manifests.
type Signer struct {
	// Key is an RSA key of at least 2048 bits, the only kind that VMware's products read.
	Key crypto.Signer
	// Chain is the certificate of the key, and after it those of intermediate authorities.
	Chain []*x509.Certificate
}

func (s *Signer) check() (*rsa.PublicKey, error) {
	key, ok := s.Key.Public().(*rsa.PublicKey)
	if !ok || key.N.BitLen() < 2048 {
		return nil, errors.New("signing an OVA: the key is not an RSA key of at least 2048 bits")
	}
	if len(s.Chain) == 0 || len(s.Chain) > MaxCertificates || !key.Equal(s.Chain[0].PublicKey) {
		return nil, fmt.Errorf("signing an OVA: want 1 to %d certificates, the first of which is that of the key", MaxCertificates)
	}
	return key, nil
}

// sign returns a certificate file.
func (s *Signer) sign(manifestName string, manifest []byte) ([]byte, error) {
	if _, err := s.check(); err != nil {
		return nil, err
	}
	h := crypto.SHA256.New()
	_, _ = h.Write(manifest)
	signature, err := s.Key.Sign(rand.Reader, h.Sum(nil), crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing an OVA: %w", err)
	}
	return s.file(manifestName, signature), nil
}

func (s *Signer) file(manifestName string, signature []byte) []byte {
	var b bytes.Buffer
	b.WriteString(line(manifestName, signature))
	for _, each := range s.Chain {
		// Writing to a buffer does not fail.
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: each.Raw})
	}
	return b.Bytes()
}

// size returns the size of a certificate file.
func (s *Signer) size(manifestName string) (int64, error) {
	key, err := s.check()
	if err != nil {
		return 0, err
	}
	return int64(len(s.file(manifestName, make([]byte, key.Size())))), nil
}
