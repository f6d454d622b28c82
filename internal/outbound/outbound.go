// Package outbound connects to the sources of golden images, of imported packages and of policies, and to no address that a user who names them must not reach through
// Stencil.
package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

const connectTimeout = 10 * time.Second

// Credentials are the credentials for one image.
type Credentials struct {
	Username, Password string
	// Authorities are certificates in PEM that are trusted besides those of the system.
	Authorities [][]byte
}

// The values of the chart in which networks are allowed.
const (
	GoldenImages  = "goldenImages.allowedNetworks"
	Transfers     = "transfers.allowedNetworks"
	PolicySources = "policySources.allowedNetworks"
)

// ErrPrivate is returned for an address that is not public.
var ErrPrivate = errors.New("the address is not public")

// Transport returns a transport that checks each address that it connects to, after it was resolved: it is public, or in a network that is allowed, and not one of
// the cluster. It checks the targets of requests that a proxy sends, too. value is the chart's value with the allowed networks, for messages. Authorities are
// trusted besides those of the system.
func Transport(networks Networks, value string, authorities [][]byte) (*http.Transport, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, authority := range authorities {
		if !roots.AppendCertsFromPEM(authority) {
			return nil, errors.New("it has a value without certificates in PEM")
		}
	}
	dialer := &net.Dialer{Timeout: connectTimeout, Control: func(_, address string, _ syscall.RawConn) error { return checkDialed(networks, value, address) }}
	proxy := proxied{networks: networks, value: value, proxy: http.ProxyFromEnvironment, resolve: net.DefaultResolver.LookupNetIP}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true, Proxy: proxy.choose,
	}, nil
}

// checkDialed returns an error if an address, HOST:PORT with a resolved host, must not be connected to.
func checkDialed(networks Networks, value, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return networks.check(to.Addr(), value)
}
