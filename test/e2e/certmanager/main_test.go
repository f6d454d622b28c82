// Package certmanager_test runs the chart with certificates.provider=cert-manager against cert-manager's own controllers and CA injector: they issue
// the requested certificates and write the CA bundles for the API server, and both servers of Stencil serve with them.
package certmanager_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

var shared = controlplane.Shared{Options: controlplane.Options{VirtualizationCRDs: true}, Prepare: func(ctx context.Context, plane *controlplane.Plane) error {
	return plane.StartCertManager(ctx)
}}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// server is one of Stencil's servers, outside the cluster.
type server struct {
	program manager.Program
	// certificate is the name of the Certificate, secret that of its Secret.
	certificate, secret string
	user                *controlplane.User
	address             string
	arguments           []string
	// directory is where the Secret is mounted.
	directory string
	process   *manager.Process
}

// mount does what a kubelet does with the volume of a Secret: it writes the keys to a folder, and returns an error while there are none.
func (s *server) mount(t *testing.T) error {
	t.Helper()
	out := kubectl(t, nil, "", "get", "secret", s.secret, "--namespace="+install.Namespace, "--output=json")
	if out.Code != 0 {
		return errors.New(out.Stderr)
	}
	var secret struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(out.Stdout), &secret); err != nil {
		return err
	}
	if secret.Data["tls.crt"] == "" || secret.Data["tls.key"] == "" {
		return fmt.Errorf("secret %s holds no certificate yet", s.secret)
	}
	for name, encoded := range secret.Data {
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.directory, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// start starts the server as the chart does in a cluster.
func (s *server) start(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.process, err = manager.Start(context.WithoutCancel(t.Context()), manager.Options{
		Program: s.program, Kubeconfig: s.user.Kubeconfig, Namespace: install.Namespace,
		WebhookAddress: net.JoinHostPort("127.0.0.1", port),
		Args:           append(s.arguments, "--certificate-source=files", "--certificate-directory="+s.directory),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.process.Stop(); err != nil {
			t.Errorf("stopping %s: %v", s.program, err)
		}
		if t.Failed() {
			t.Logf("what %s wrote:\n%s", s.program, s.process.Logs())
		}
	})
}

// serves returns the certificate that the server presents.
func (s *server) serves(t *testing.T) (*x509.Certificate, error) {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(t.Context(), "tcp", s.process.WebhookAddress())
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// kubectl runs kubectl as a user; nil is the administrator.
func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, shared.Plane(t), as, stdin, arguments...)
}

func mustKubectl(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, shared.Plane(t), nil, stdin, arguments...).Stdout
}
