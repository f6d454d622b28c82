package files

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func write(t *testing.T, directory string, certificate *tls.Certificate) {
	t.Helper()
	certificatePEM, keyPEM := certificatestest.Files(t, certificate)
	for name, content := range map[string][]byte{certificateFile: certificatePEM, keyFile: keyPEM} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// project writes a certificate into a directory like the kubelet does for a Secret: a link to a link to a folder that is replaced as a whole.
func project(t *testing.T, directory, version string, certificate *tls.Certificate) {
	t.Helper()
	folder := filepath.Join(directory, "..version_"+version)
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, folder, certificate)
	former, _ := os.Readlink(filepath.Join(directory, "..data"))
	next := filepath.Join(directory, "..data_next")
	if err := os.Symlink(filepath.Base(folder), next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(directory, "..data")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{certificateFile, keyFile} {
		err := os.Symlink(filepath.Join("..data", name), filepath.Join(directory, name))
		if err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	if former != "" {
		if err := os.RemoveAll(filepath.Join(directory, former)); err != nil {
			t.Fatal(err)
		}
	}
}

// serial returns the serial number of what the source serves.
func serial(t *testing.T, source *Source) string {
	t.Helper()
	certificate, err := source.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificate.Leaf.SerialNumber.String()
}

func awaitSerial(t *testing.T, source *Source, want string) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for serial(t, source) != want {
		select {
		case <-deadline.C:
			t.Fatal("the new certificate is not served")
		case <-ticker.C:
		}
	}
}

func TestSourceFollowsTheFiles(t *testing.T) {
	authority := certificatestest.NewAuthority(t, time.Now().Add(-time.Hour), 48*time.Hour)
	serving := func() *tls.Certificate {
		return authority.Serving(t, time.Now().Add(-time.Minute), time.Hour)
	}
	cases := map[string]func(t *testing.T, directory, version string, certificate *tls.Certificate){
		"when they are overwritten": func(t *testing.T, directory, _ string, certificate *tls.Certificate) {
			write(t, directory, certificate)
		},
		"when a mounted Secret changes": project,
	}
	for name, put := range cases {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			put(t, directory, "1", serving())
			source, err := New(Options{Directory: directory})
			if err != nil {
				t.Fatal(err)
			}
			// Not every change is notified; see pollInterval.
			source.watcher.WithWatchInterval(100 * time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			stopped := make(chan error, 1)
			go func() { stopped <- source.Start(ctx) }()

			for _, version := range []string{"2", "3"} {
				next := serving()
				put(t, directory, version, next)
				awaitSerial(t, source, next.Leaf.SerialNumber.String())
			}
			cancel()
			if err := <-stopped; err != nil {
				t.Errorf("stopping: %v", err)
			}
		})
	}
}

func TestSourceKeepsTheCertificateWhileTheFilesDoNotMatch(t *testing.T) {
	authority := certificatestest.NewAuthority(t, time.Now().Add(-time.Hour), 48*time.Hour)
	first := authority.Serving(t, time.Now().Add(-time.Minute), time.Hour)
	second := authority.Serving(t, time.Now().Add(-time.Minute), time.Hour)
	directory := t.TempDir()
	write(t, directory, first)
	source, err := New(Options{Directory: directory})
	if err != nil {
		t.Fatal(err)
	}
	certificatePEM, _ := certificatestest.Files(t, second)
	if err := os.WriteFile(filepath.Join(directory, certificateFile), certificatePEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := source.watcher.ReadCertificate(); err == nil {
		t.Error("a certificate was read that the key does not belong to")
	}
	if got, want := serial(t, source), first.Leaf.SerialNumber.String(); got != want {
		t.Errorf("serial: want %s, got %s", want, got)
	}
}

func TestNewNamesTheDirectoryThatHoldsNothing(t *testing.T) {
	directory := t.TempDir()
	_, err := New(Options{Directory: directory})
	if err == nil || !strings.Contains(err.Error(), directory) {
		t.Errorf("want an error that names %s, got %v", directory, err)
	}
}

func TestReady(t *testing.T) {
	authority := certificatestest.NewAuthority(t, noon.Add(-time.Hour), 48*time.Hour)
	cases := map[string]struct {
		notBefore time.Time
		want      string
	}{
		"a certificate that is valid":           {notBefore: noon.Add(-time.Minute)},
		"a certificate whose time is over":      {notBefore: noon.Add(-2 * time.Hour), want: "the serving certificate is valid from 2026-06-01T10:00:00Z to 2026-06-01T11:00:00Z only"},
		"a certificate whose time has not come": {notBefore: noon.Add(time.Minute), want: "the serving certificate is valid from 2026-06-01T12:01:00Z to 2026-06-01T13:01:00Z only"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			write(t, directory, authority.Serving(t, tc.notBefore, time.Hour))
			source, err := New(Options{Directory: directory, Clock: clocktesting.NewFakePassiveClock(noon)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := source.Ready(nil); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
