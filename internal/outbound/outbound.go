// Package outbound connects to the sources of golden images, of imported packages and of policies, and to no address that a user who names them must not reach through
// Stencil.
package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
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

// Transport returns a transport that checks each address that it connects to, after it was resolved: it is public, or in a network that is allowed. value
// is the chart's value with the networks, for messages. Authorities are trusted besides those of the system.
func Transport(allowed []netip.Prefix, value string, authorities [][]byte) (*http.Transport, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, authority := range authorities {
		if !roots.AppendCertsFromPEM(authority) {
			return nil, errors.New("it has a value without certificates in PEM")
		}
	}
	dialer := &net.Dialer{Timeout: connectTimeout, Control: func(_, address string, _ syscall.RawConn) error { return check(allowed, value, address) }}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment,
	}, nil
}

// check returns an error if an address, HOST:PORT with a resolved host, must not be connected to.
func check(allowed []netip.Prefix, value, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := to.Addr().Unmap().WithZone("")
	for _, network := range allowed {
		if network.Contains(ip) {
			return nil
		}
	}
	real := ip
	if translated.Contains(ip) {
		bytes := ip.As16()
		real = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	special := slices.ContainsFunc(notPublic, func(network netip.Prefix) bool { return network.Contains(real) })
	if !real.IsGlobalUnicast() || real.IsPrivate() || special {
		return fmt.Errorf("%s: %w: allow its network in the chart's value %s", ip, ErrPrivate, value)
	}
	return nil
}

var (
	// translated are addresses whose last 4 bytes are an IPv4 address, to which NAT64 connects (RFC 6052).
	translated = netip.MustParsePrefix("64:ff9b::/96")
	// notPublic are further networks of the registries of special addresses of IANA that may lead into a private network.
	notPublic = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),      // this host
		netip.MustParsePrefix("100.64.0.0/10"),  // carriers and their customers (RFC 6598), which clusters use for pods
		netip.MustParsePrefix("192.0.0.0/24"),   // protocols
		netip.MustParsePrefix("198.18.0.0/15"),  // benchmarks
		netip.MustParsePrefix("240.0.0.0/4"),    // reserved, which some networks use nevertheless
		netip.MustParsePrefix("::/96"),          // an IPv4 address in IPv6, deprecated
		netip.MustParsePrefix("64:ff9b:1::/48"), // local NAT64, of which the place of the IPv4 address is not known
		netip.MustParsePrefix("2001::/32"),      // Teredo
		netip.MustParsePrefix("2002::/16"),      // 6to4
		netip.MustParsePrefix("fec0::/10"),      // site-local, deprecated
	}
)
