package authority

import (
	"crypto/x509"
	"net"
	"testing"

	librarytls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/google/go-cmp/cmp"
)

// signed records what it has to sign.
type signed struct {
	librarytls.Authority
	template *x509.Certificate
}

func (s *signed) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	s.template = template
	return template, nil
}

func TestAddresses(t *testing.T) {
	cases := map[string]struct {
		names         []string
		wantNames     []string
		wantAddresses []string
	}{
		"names stay names": {
			names:     []string{"stencil-webhook.stencil-system.svc", "localhost"},
			wantNames: []string{"stencil-webhook.stencil-system.svc", "localhost"},
		},
		"addresses of both families are told from names": {
			names:         []string{"127.0.0.1", "localhost", "::1"},
			wantNames:     []string{"localhost"},
			wantAddresses: []string{"127.0.0.1", "::1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			library := &signed{}
			template := &x509.Certificate{DNSNames: tc.names}
			if _, err := (addresses{library}).Sign(template); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantNames, library.template.DNSNames); diff != "" {
				t.Errorf("DNS names (-want +got):\n%s", diff)
			}
			var want []net.IP
			for _, address := range tc.wantAddresses {
				want = append(want, net.ParseIP(address))
			}
			if diff := cmp.Diff(want, library.template.IPAddresses); diff != "" {
				t.Errorf("IP addresses (-want +got):\n%s", diff)
			}
		})
	}
}
