package certificates_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// unhurried is a settle time in which even a busy API server notices a changed caBundle. It has to be less than a third of the life of a serving
// certificate.
const unhurried = "--certificate-settle-time=2s"

// awaitRotation waits until the Secret holds another authority than before, and every replica serves a certificate of it.
// It returns the new authority.
func awaitRotation(t *testing.T, before []byte, replicas ...*manager.Process) []byte {
	t.Helper()
	client := newClient(t)
	var after []byte
	harness.Eventually(t, "the authority is new, and everybody serves by it", func() error {
		secret, err := client.CoreV1().Secrets(install.Namespace).Get(t.Context(), authoritySecret, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if after = secret.Data[corev1.TLSCertKey]; len(after) == 0 || bytes.Equal(before, after) {
			return errors.New("there is no new authority")
		}
		for _, replica := range replicas {
			if err := servesBy(t.Context(), replica, after); err != nil {
				return fmt.Errorf("the replica at %s does not serve a certificate of the new authority: %w", replica.WebhookAddress(), err)
			}
		}
		return nil
	})
	return after
}

func TestAuthorityIsReplacedUnderLoad(t *testing.T) {
	replicas := []*manager.Process{startReplica(t, unhurried), startReplica(t, unhurried)}
	before := authority(t)
	s := startStream(t)
	s.awaitMore(t, 100)

	kubectl(t, "", "--namespace", install.Namespace, "delete", "secret", authoritySecret)
	after := awaitRotation(t, before, replicas...)
	s.awaitMore(t, 100)

	bundle, err := caBundle(t.Context(), newClient(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(bundle, after) || !bytes.Contains(bundle, before) {
		t.Errorf("want the new authority and the former one in the caBundle, got\n%s", bundle)
	}
	s.expectNoFailure(t)
}

func TestAuthorityIsReplacedSeveralTimesInARow(t *testing.T) {
	replicas := []*manager.Process{startReplica(t, unhurried), startReplica(t, unhurried)}
	s := startStream(t)
	s.awaitMore(t, 50)
	before := authority(t)
	for range 3 {
		// The previous authority is deleted before it is used everywhere.
		kubectl(t, "", "--namespace", install.Namespace, "delete", "secret", authoritySecret)
		before = awaitRotation(t, before)
	}
	harness.Eventually(t, "every replica serves by the present authority", func() error {
		for _, replica := range replicas {
			if err := servesBy(t.Context(), replica, before); err != nil {
				return err
			}
		}
		return nil
	})
	s.awaitMore(t, 100)
	s.expectNoFailure(t)
}

// An authority reaches two thirds of its life while it is in use.
func TestAuthorityIsReplacedInTime(t *testing.T) {
	startReplica(t) // makes sure that there is a Secret
	client := newClient(t)
	secret, err := client.CoreV1().Secrets(install.Namespace).Get(t.Context(), authoritySecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const life = 90 * time.Second
	certificate, key := makeAuthority(t, time.Now().Add(-life*2/3+12*time.Second), life)
	secret.Data = map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key, "ca.crt": certificate}
	if _, err := client.CoreV1().Secrets(install.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	replicas := []*manager.Process{
		startReplica(t, "--certificate-authority-duration=1h", "--certificate-duration=9s", unhurried),
		startReplica(t, "--certificate-authority-duration=1h", "--certificate-duration=9s", unhurried),
	}
	s := startStream(t)
	for _, replica := range replicas {
		if err := servesBy(t.Context(), replica, certificate); err != nil {
			t.Fatalf("the replica at %s does not serve by the ageing authority: %v", replica.WebhookAddress(), err)
		}
	}
	awaitRotation(t, certificate, replicas...)
	s.awaitMore(t, 100)

	// The serving certificates, which are valid for seconds only, continue to be replaced.
	for _, replica := range replicas {
		first, err := servedBy(t.Context(), replica)
		if err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "the serving certificate is replaced", func() error {
			now, err := servedBy(t.Context(), replica)
			if err == nil && now.Equal(first) {
				err = errors.New("the serving certificate is not replaced")
			}
			return err
		})
	}
	s.expectNoFailure(t)
}

// makeAuthority makes a certificate authority as the manager does, with the given validity.
func makeAuthority(t *testing.T, notBefore time.Time, life time.Duration) (certificatePEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "stencil-webhook-ca"},
		NotBefore:             notBefore,
		NotAfter:              notBefore.Add(life),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
