package authority

import (
	"crypto/x509"
	"net"

	librarytls "github.com/cert-manager/cert-manager/pkg/server/tls"
)

// addresses is an authority that also signs for IP addresses. The library's source of certificates supports DNS names only, and adds all names as
// such; a manager that runs outside the cluster may be called by address.
type addresses struct {
	librarytls.Authority
}

// Sign implements the library's Authority.
func (a addresses) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	var names []string
	for _, name := range template.DNSNames {
		if address := net.ParseIP(name); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
			continue
		}
		names = append(names, name)
	}
	template.DNSNames = names
	return a.Authority.Sign(template)
}
