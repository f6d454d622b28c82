package transfer

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/vmstencil/stencil/transfer"
)

const (
	// keyName is the key of the Secret with the key of the manager, which has keySize bytes.
	keyName = "key"
	keySize = 32
	// validity is how long the certificate of a mover is valid, from the creation of the transfer. No transfer takes as long.
	validity = 30 * 24 * time.Hour
)

// keys has the key of the manager, from which the secrets of all transfers derive.
type keys struct {
	secrets corev1client.SecretInterface
	name    string

	mutex sync.Mutex
	key   []byte
}

// load returns the key. The first process makes it.
func (k *keys) load(ctx context.Context) ([]byte, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.key != nil {
		return k.key, nil
	}
	stored, err := k.secrets.Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		made := make([]byte, keySize)
		_, _ = rand.Read(made)
		stored, err = k.secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: k.name}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{keyName: made}, Immutable: new(true),
		}, metav1.CreateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of transfers: %w", err)
	}
	if len(stored.Data[keyName]) != keySize {
		return nil, fmt.Errorf("reading the key of transfers: Secret %s has no key of %d bytes: delete it, and a new one is made; transfers in progress start again", k.name, keySize)
	}
	k.key = bytes.Clone(stored.Data[keyName])
	return k.key, nil
}

// identity are the secrets of one transfer.
type identity struct {
	// token is the manager's, downloadToken that of users who download or upload a package.
	token, downloadToken string
	// certificate and key in PEM.
	certificate, key []byte
}

// identify derives the identity of a transfer. It is the same each time, so that every manager can speak to the mover.
func (k *keys) identify(ctx context.Context, uid types.UID, created time.Time, names []string) (*identity, error) {
	key, err := k.load(ctx)
	if err != nil {
		return nil, err
	}
	derive := func(purpose string, size int) []byte {
		derived, err := hkdf.Key(sha256.New, key, nil, purpose+"/"+string(uid), size)
		if err != nil {
			// Only for lengths that are not used here.
			panic(err)
		}
		return derived
	}
	private := ed25519.NewKeyFromSeed(derive("tls", ed25519.SeedSize))
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(derive("serial", 16)),
		Subject:      pkix.Name{CommonName: transfer.ServerName}, DNSNames: append([]string{transfer.ServerName}, names...),
		NotBefore: created.UTC().Add(-time.Hour), NotAfter: created.UTC().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	certificate, err := x509.CreateCertificate(nil, template, template, private.Public(), private)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the mover: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("making the key of the mover: %w", err)
	}
	return &identity{
		token: hex.EncodeToString(derive("token", 32)), downloadToken: hex.EncodeToString(derive("download", 32)),
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}

// client is the TLS configuration of a client that accepts this mover only.
func (i *identity) client() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(i.certificate)
	return &tls.Config{RootCAs: roots, ServerName: transfer.ServerName, MinVersion: tls.VersionTLS13}
}
