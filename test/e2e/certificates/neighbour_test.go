package certificates_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// refreshInterval is the maximum age of the neighbour's caBundle.
const refreshInterval = 300 * time.Millisecond

// neighbour simulates a second API server: one that makes a new connection for every call, and reads the caBundle only now and then. The real one
// reuses its connections, and so notices little of what is served.
type neighbour struct {
	client kubernetes.Interface
	read   time.Time
	roots  *x509.CertPool
}

func newNeighbour(t *testing.T) *neighbour {
	t.Helper()
	return &neighbour{client: newClient(t)}
}

func newClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(shared.Plane(t).AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (n *neighbour) call(ctx context.Context, _ int) error {
	if time.Since(n.read) > refreshInterval {
		if err := n.refresh(ctx); err != nil {
			return err
		}
	}
	err := n.shakeHands(ctx)
	if err != nil && time.Since(n.read) > 2*refreshInterval {
		// The host is so busy that the neighbour's caBundle is older than allowed.
		return errors.Join(n.refresh(ctx), n.shakeHands(ctx))
	}
	return err
}

func (n *neighbour) refresh(ctx context.Context) error {
	// The bundle is at least as new as the start of the request.
	asked := time.Now()
	bundle, err := caBundle(ctx, n.client)
	if err != nil {
		return err
	}
	n.read, n.roots = asked, x509.NewCertPool()
	n.roots.AppendCertsFromPEM(bundle)
	return nil
}

func (n *neighbour) shakeHands(ctx context.Context) error {
	host, _, err := net.SplitHostPort(service.Address())
	if err != nil {
		return err
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: n.roots, ServerName: host}}
	connection, err := dialer.DialContext(ctx, "tcp", service.Address())
	if err != nil {
		return fmt.Errorf("shaking hands: %w", err)
	}
	return connection.Close()
}

// caBundle returns the caBundle of the render webhook.
func caBundle(ctx context.Context, client kubernetes.Interface) ([]byte, error) {
	configuration, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "a-stencil-render", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return configuration.Webhooks[0].ClientConfig.CABundle, nil
}

// authority returns the certificate of the present authority, in PEM.
func authority(t *testing.T) []byte {
	t.Helper()
	secret, err := newClient(t).CoreV1().Secrets(install.Namespace).Get(t.Context(), authoritySecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret.Data[corev1.TLSCertKey]
}

// servedBy returns the certificate that a replica serves.
func servedBy(ctx context.Context, process *manager.Process) (*x509.Certificate, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", process.WebhookAddress())
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// servesBy returns an error unless a replica serves a certificate that the authority has signed.
func servesBy(ctx context.Context, process *manager.Process, authority []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return errors.New("the authority cannot be read")
	}
	leaf, err := servedBy(ctx, process)
	if err != nil {
		return err
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots})
	return err
}
