package servingcert_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/vmstencil/stencil/apiserver/servingcert"
)

// source has the certificate that a test gives it.
type source struct{ pair *tls.Certificate }

func (s *source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.pair == nil {
		return nil, errors.New("none yet")
	}
	return s.pair, nil
}

type listener struct{ told int }

func (l *listener) Enqueue() { l.told++ }

func signed(t *testing.T, serial int64) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestAnotherCertificateIsTold(t *testing.T) {
	from := &source{}
	provider, err := servingcert.New(from)
	if err != nil {
		t.Fatal(err)
	}
	heard := &listener{}
	provider.AddListener(heard)
	if err := provider.RunOnce(t.Context()); err == nil {
		t.Error("a source without a certificate is no error")
	}
	if _, err := tls.X509KeyPair(provider.CurrentCertKeyContent()); err != nil || heard.told != 0 {
		t.Errorf("until there is one, %v, told %d times", err, heard.told)
	}
	for serial := int64(1); serial <= 2; serial++ {
		from.pair = signed(t, serial)
		// The second time the certificate is the same.
		for range 2 {
			if err := provider.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		pair, err := tls.X509KeyPair(provider.CurrentCertKeyContent())
		if err != nil {
			t.Fatal(err)
		}
		if pair.Leaf.SerialNumber.Int64() != serial || heard.told != int(serial) {
			t.Errorf("serial %v, told %d times, want %d", pair.Leaf.SerialNumber, heard.told, serial)
		}
	}
}
