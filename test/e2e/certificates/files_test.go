package certificates_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// A cluster switches from Stencil's own authority to a provided certificate without losing a request: the provided caBundle also contains the present
// authority. Then the files are replaced while they are in use.
func TestCertificateFromFiles(t *testing.T) {
	plane := shared.Plane(t)
	own := startReplica(t)
	first, second := provided(t, plane), provided(t, plane)
	directory := t.TempDir()
	write(t, directory, first)
	s := startStream(t)
	s.awaitMore(t, 50)

	upgrade(t, plane, slices.Concat(first.Authority, authority(t)))
	// The next test requires the release in its original state.
	t.Cleanup(func() { restore(t, plane) })
	files := launch(t, manager.Options{
		Args: []string{"--certificate-source=files", "--certificate-directory=" + directory, "--webhook-configurations="},
	})
	if err := own.Stop(); err != nil {
		t.Fatal(err)
	}
	s.awaitMore(t, 50)
	if err := servesBy(t.Context(), files, first.Authority); err != nil {
		t.Error(err)
	}

	before, err := servedBy(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	write(t, directory, second)
	harness.Eventually(t, "the new certificate is served", func() error {
		now, err := servedBy(t.Context(), files)
		if err == nil && now.Equal(before) {
			err = errors.New("the files are not read again")
		}
		return err
	})
	s.awaitMore(t, 50)
	s.expectNoFailure(t)
}

// upgrade makes the release trust the given authorities and stop publishing its own. The manager owns the field caBundle, so helm needs
// --force-conflicts to take it.
func upgrade(t *testing.T, plane *controlplane.Plane, authorities []byte) {
	t.Helper()
	bundle := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(bundle, authorities, 0o600); err != nil {
		t.Fatal(err)
	}
	chart, err := install.ChartFolder()
	if err != nil {
		t.Fatal(err)
	}
	out, err := plane.Helm(t.Context(), "upgrade", install.Release, chart, "--namespace", install.Namespace, "--reuse-values", "--force-conflicts",
		"--set=certificates.provider=secret", "--set=certificates.secret.name=provided", "--set-file=certificates.secret.caBundle="+bundle)
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("helm upgrade: exit %d\n%s", out.Code, out.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// restore brings the release back to Stencil's own authority.
func restore(t *testing.T, plane *controlplane.Plane) {
	t.Helper()
	if err := install.Chart(context.WithoutCancel(t.Context()), plane, release); err != nil {
		t.Errorf("restoring the release: %v", err)
	}
}

func provided(t *testing.T, plane *controlplane.Plane) *controlplane.Certificate {
	t.Helper()
	certificate, err := plane.ServingCertificate("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func write(t *testing.T, directory string, certificate *controlplane.Certificate) {
	t.Helper()
	for name, content := range map[string][]byte{"tls.crt": certificate.Certificate, "tls.key": certificate.Key} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
