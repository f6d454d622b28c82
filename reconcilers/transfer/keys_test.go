package transfer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

var created = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func TestAllManagersDeriveTheSameSecrets(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("stencil-system")
	identify := func(uid types.UID) *identity {
		t.Helper()
		// Each of these is another process.
		made, err := (&keys{secrets: secrets, name: "key"}).identify(t.Context(), uid, created, nil)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first, again, other := identify("u-1"), identify("u-1"), identify("u-2")
	if first.token != again.token || first.downloadToken != again.downloadToken || !bytes.Equal(first.certificate, again.certificate) || !bytes.Equal(first.key, again.key) {
		t.Error("two managers have different secrets of a transfer")
	}
	if first.token == other.token || first.downloadToken == other.downloadToken || first.token == first.downloadToken || bytes.Equal(first.key, other.key) {
		t.Error("two transfers have the same secrets")
	}
}

func TestAManagerAcceptsTheMoverOfTheTransferOnly(t *testing.T) {
	k := &keys{secrets: fake.NewClientset().CoreV1().Secrets("stencil-system"), name: "key"}
	own, err1 := k.identify(t.Context(), "u-1", created, []string{"export-u-1.shop.svc"})
	other, err2 := k.identify(t.Context(), "u-2", created, nil)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(own.certificate, own.key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	try := func(config *tls.Config) error {
		config.Time = func() time.Time { return created.Add(24 * time.Hour) }
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}).Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := try(own.client()); err != nil {
		t.Error(err)
	}
	service := own.client()
	service.ServerName = "export-u-1.shop.svc"
	if err := try(service); err != nil {
		t.Error(err)
	}
	var unknown *tls.CertificateVerificationError
	if err := try(other.client()); !errors.As(err, &unknown) {
		t.Errorf("the mover of another transfer is accepted: %v", err)
	}
}

func TestAKeyThatIsNoneIsReported(t *testing.T) {
	client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "stencil-system", Name: "key"}, Data: map[string][]byte{"key": []byte("short")}})
	_, err := (&keys{secrets: client.CoreV1().Secrets("stencil-system"), name: "key"}).identify(t.Context(), "u", created, nil)
	const want = "reading the key of transfers: Secret key has no key of 32 bytes: delete it, and a new one is made; transfers in progress start again"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
