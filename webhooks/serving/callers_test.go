package serving

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
	"github.com/vmstencil/stencil/internal/testfile"
)

// TestOnlyCallersWithACertificateAreServed checks a server with an AuthorityFile.
func TestOnlyCallersWithACertificateAreServed(t *testing.T) {
	begin := time.Now().Add(-time.Hour)
	authority := certificatestest.NewAuthority(t, begin, 24*time.Hour)
	other := certificatestest.NewAuthority(t, begin, 24*time.Hour)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(content []byte) {
		t.Helper()
		testfile.Write(t, file, content)
	}
	apiserver := authority.Client(t, "kube-apiserver", begin, 24*time.Hour)

	for name, tc := range map[string]struct {
		names       []string
		certificate *tls.Certificate
		content     []byte
		want        int
		wantText    string
		wantError   string
	}{
		"the certificate of an API server": {names: []string{"kube-apiserver"}, certificate: apiserver, want: http.StatusOK},
		"any certificate of the authority, where no name is asked for": {
			certificate: authority.Client(t, "somebody", begin, 24*time.Hour), want: http.StatusOK,
		},
		"no certificate": {want: http.StatusForbidden, wantText: "a client certificate is needed"},
		"a certificate of another name": {
			names: []string{"kube-apiserver"}, certificate: authority.Client(t, "somebody", begin, 24*time.Hour),
			want: http.StatusForbidden, wantText: "does not allow",
		},
		"a certificate of another authority":           {certificate: other.Client(t, "kube-apiserver", begin, 24*time.Hour), wantError: "tls: "},
		"a certificate that has expired":               {certificate: authority.Client(t, "kube-apiserver", begin, time.Minute), wantError: "tls: "},
		"a serving certificate":                        {certificate: authority.Serving(t, begin, 24*time.Hour), wantError: "tls: "},
		"a file without an authority lets nobody pass": {certificate: apiserver, content: []byte("none"), wantError: "tls: "},
	} {
		t.Run(name, func(t *testing.T) {
			write(authority.PEM())
			f := start(t, allow, func(o *Options) { o.Callers = Callers{AuthorityFile: file, Names: tc.names} })
			if tc.content != nil {
				write(tc.content)
			}
			// By default a client sends no certificate of an authority that the server does not name.
			f.client.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if tc.certificate == nil {
					return &tls.Certificate{}, nil
				}
				return tc.certificate, nil
			}
			response, content, err := f.tryPost(t.Context(), "", review(t, admissionv1.Create, []byte(`{}`)))
			switch {
			case tc.wantError != "":
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("want an error of TLS, got %v", err)
				}
			case err != nil:
				t.Error(err)
			case response.StatusCode != tc.want || !strings.Contains(string(content), tc.wantText):
				t.Errorf("got %d: %s", response.StatusCode, content)
			}
			if tc.content == nil {
				request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
				if err := f.Ready(request); err != nil {
					t.Errorf("the readiness check: %v", err)
				}
			}
		})
	}
}

// TestTheAuthorityOfCallersIsReplaced checks new connections; open ones remain.
func TestTheAuthorityOfCallersIsReplaced(t *testing.T) {
	begin := time.Now().Add(-time.Hour)
	before, after := certificatestest.NewAuthority(t, begin, 24*time.Hour), certificatestest.NewAuthority(t, begin, 24*time.Hour)
	file := filepath.Join(t.TempDir(), "ca.crt")
	f := start(t, allow, func(o *Options) { o.Callers = Callers{AuthorityFile: file} })
	call := func(authority *certificatestest.Authority) error {
		client := newClient(f.roots)
		defer client.CloseIdleConnections()
		client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{*authority.Client(t, "kube-apiserver", begin, 24*time.Hour)}
		f.client = client
		response, _, err := f.tryPost(t.Context(), "", review(t, admissionv1.Create, []byte(`{}`)))
		if err == nil && response.StatusCode != http.StatusOK {
			t.Errorf("got %s", response.Status)
		}
		return err
	}
	if err := call(before); err == nil {
		t.Error("somebody was served without a file of authorities")
	}
	testfile.Write(t, file, before.PEM())
	if err := call(before); err != nil {
		t.Error(err)
	}
	testfile.Write(t, file, after.PEM())
	if err := call(after); err != nil {
		t.Error(err)
	}
}
