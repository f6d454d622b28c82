package outbound

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// proxied is a proxy function of a transport that checks the target of each request that a proxy is to connect to. The dialer checks the address of the
// proxy only. A name that only the proxy resolves is left to the proxy.
type proxied struct {
	networks Networks
	value    string
	proxy    func(*http.Request) (*url.URL, error)
	resolve  func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

func (p proxied) choose(request *http.Request) (*url.URL, error) {
	proxy, err := p.proxy(request)
	if err != nil || proxy == nil {
		return proxy, err
	}
	host := strings.TrimSuffix(request.URL.Hostname(), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		return proxy, p.networks.check(ip, p.value)
	}
	if endsInNumber(host) {
		// Parsers of proxies read 127.1, 0x7f000001 and 2130706433 as addresses.
		return nil, fmt.Errorf("%s: %w: write the address as four numbers", host, ErrPrivate)
	}
	addresses, err := p.resolve(request.Context(), "ip", host)
	if err != nil {
		return proxy, nil //nolint:nilerr // Behind a proxy, names of the internet often have no address.
	}
	for _, ip := range addresses {
		if err := p.networks.check(ip, p.value); err != nil {
			return nil, err
		}
	}
	return proxy, nil
}

// endsInNumber reports whether the last label of a host is a number, so that the host is an IPv4 address in the sense of the URL Standard.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, found := strings.CutPrefix(strings.ToLower(last), "0x"); found {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
