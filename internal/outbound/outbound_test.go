package outbound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
)

const denied = ": the address is not public: allow its network in the chart's value goldenImages.allowedNetworks"

func TestAddressesThatAreNotPublicAreDenied(t *testing.T) {
	for address, public := range map[string]bool{
		"8.8.8.8": true, "2001:4860:4860::8888": true, "::ffff:8.8.8.8": true, "100.128.0.1": true, "2606:4700::1111": true, "192.0.1.1": true, "198.20.0.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "::ffff:127.0.0.1": false,
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "::ffff:10.1.2.3": false, "fd00::1": false, "fc00::1": false,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false,
		"100.64.0.1": false, "100.127.255.255": false, "::ffff:100.64.0.1": false,
		"224.0.0.1": false, "ff02::1": false, "ff0e::1": false, "0.0.0.0": false, "::": false, "255.255.255.255": false, "0.1.2.3": false,
		"64:ff9b::a01:203": false, "64:ff9b::808:808": true, "64:ff9b:1::a01:203": false, "64:ff9b:1::808:808": false, "2002:a01:203::1": false, "::a01:203": false, "240.0.0.1": false,
		"198.18.0.1": false, "192.0.0.1": false, "2001::a01:203": false, "fec0::1": false,
		// Documentation, discard, and the other special networks.
		"192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, "2001:db8::1": false, "3fff::1": false, "3fff:fff::1": false, "3fff:1000::1": true,
		"100::1": false, "100:0:0:1::1": false, "192.31.196.1": false, "192.52.193.1": false, "192.88.99.1": false, "192.175.48.1": false,
		"2001:2::1": false, "2001:10::1": false, "2001:20::1": false, "2001:30::1": false, "2001:1ff::1": false, "2001:200::1": true, "2620:4f:8000::1": false, "3ffe::1": false, "5f00::1": false, "4000::1": false,
		// Platforms.
		"168.63.129.16": false, "::ffff:168.63.129.16": false, "192.0.0.192": false, "100.100.100.200": false, "fd00:ec2::254": false, "fd20:ce::254": false, "169.254.170.2": false,
		"64:ff9b::a83f:8110": false, "64:ff9b::a9fe:a9fe": false,
		// Embedded: IPv4-translated, ISATAP, 6to4 and Teredo.
		"::ffff:0:169.254.169.254": false, "::ffff:0:8.8.8.8": false, "2001:4860::5efe:a9fe:a9fe": false, "2001:4860::200:5efe:10.0.0.1": false, "2001:4860::5efe:168.63.129.16": false,
		"2001:4860::5efe:8.8.8.8": true, "2002:808:808::1": false, "2001:0:808:808::f5fe:fdfc": false,
	} {
		t.Run(address, func(t *testing.T) {
			parsed := netip.MustParseAddr(address)
			err := checkDialed(Networks{}, GoldenImages, netip.AddrPortFrom(parsed, 443).String())
			switch {
			case public:
				if err != nil {
					t.Error(err)
				}
			case err == nil:
				t.Error("it is not denied")
			default:
				if want := parsed.Unmap().WithZone("").String() + denied; err.Error() != want {
					t.Errorf("got %q, want %q", err, want)
				}
			}
		})
	}
}

func TestNetworks(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed, cluster []netip.Prefix
		address          string
		permitted        bool
	}{
		"an allowed network":                        {allowed: prefixes("10.1.0.0/16"), address: "::ffff:10.1.2.3", permitted: true},
		"an allowed network, mapped":                {allowed: prefixes("::ffff:10.1.0.0/112"), address: "10.1.2.3", permitted: true},
		"beside it":                                 {allowed: prefixes("10.1.0.0/16"), address: "10.2.0.1"},
		"NAT64 to it":                               {allowed: prefixes("10.1.0.0/16"), address: "64:ff9b::a01:203", permitted: true},
		"6to4 to it, which is not allowed":          {allowed: prefixes("10.1.0.0/16"), address: "2002:a01:203::1"},
		"6to4, which is allowed, to a private one":  {allowed: prefixes("2002::/16"), address: "2002:a01:203::1"},
		"6to4, which is allowed, to a public one":   {allowed: prefixes("2002::/16"), address: "2002:808:808::1", permitted: true},
		"Teredo, which is allowed, to metadata":     {allowed: prefixes("2001::/32"), address: "2001:0:808:808::5601:5601"},
		"metadata in an allowed network":            {allowed: prefixes("169.254.0.0/16"), address: "169.254.169.254"},
		"metadata of Alibaba in an allowed network": {allowed: prefixes("100.64.0.0/10"), address: "100.100.100.200"},
		"metadata in a network of all":              {allowed: prefixes("::/0", "0.0.0.0/0"), address: "fd00:ec2::254"},
		"metadata in NAT64, with a network of all":  {allowed: prefixes("::/0", "0.0.0.0/0"), address: "64:ff9b::a9fe:a9fe"},
		"metadata that is allowed itself":           {allowed: prefixes("169.254.169.254/32"), address: "169.254.169.254", permitted: true},
		"the cluster in an allowed network":         {allowed: prefixes("10.0.0.0/8"), cluster: prefixes("10.96.0.0/12"), address: "10.96.0.1"},
		"the cluster, mapped":                       {allowed: prefixes("10.0.0.0/8"), cluster: prefixes("10.96.0.0/12"), address: "::ffff:10.96.0.1"},
		"beside the cluster":                        {allowed: prefixes("10.0.0.0/8"), cluster: prefixes("10.96.0.0/12"), address: "10.1.0.1", permitted: true},
		"the cluster itself is allowed":             {allowed: prefixes("10.96.0.0/12"), cluster: prefixes("10.96.0.0/12"), address: "10.96.0.1", permitted: true},
		"a Service of the cluster is allowed":       {allowed: prefixes("10.96.0.7/32"), cluster: prefixes("10.96.0.0/12"), address: "10.96.0.7", permitted: true},
		"another Service is not":                    {allowed: prefixes("10.96.0.7/32", "10.0.0.0/8"), cluster: prefixes("10.96.0.0/12"), address: "10.96.0.1"},
		"a cluster with public addresses":           {cluster: prefixes("2606:4700::/32"), address: "2606:4700::1111"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Networks{Allowed: tc.allowed, Cluster: tc.cluster}.check(netip.MustParseAddr(tc.address), Transfers)
			if permitted := err == nil; permitted != tc.permitted || err != nil && !errors.Is(err, ErrPrivate) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTargetsBehindAProxyAreChecked(t *testing.T) {
	proxy, err := url.Parse("http://192.0.2.1:3128")
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		switch host {
		case "public.example":
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
		case "mixed.example":
			return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")}, nil
		default:
			return nil, &net.DNSError{Name: host, IsNotFound: true}
		}
	}
	for target, want := range map[string]string{
		"https://public.example/a":   "",
		"https://unknown.example/a":  "",
		"https://8.8.8.8/a":          "",
		"https://mixed.example/a":    "10.0.0.1" + denied,
		"https://mixed.example./a":   "10.0.0.1" + denied,
		"http://169.254.169.254/a":   "169.254.169.254" + denied,
		"http://[fd00:ec2::254]/a":   "fd00:ec2::254" + denied,
		"http://2852039166/a":        "2852039166: the address is not public: write the address as four numbers",
		"http://0xa9fea9fe/a":        "0xa9fea9fe: the address is not public: write the address as four numbers",
		"http://127.1/a":             "127.1: the address is not public: write the address as four numbers",
		"http://0251.0376.0251.0376": "0251.0376.0251.0376: the address is not public: write the address as four numbers",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := proxied{value: GoldenImages, proxy: http.ProxyURL(proxy), resolve: resolve}.choose(request)
		switch {
		case want == "" && (err != nil || chosen == nil):
			t.Errorf("%s: got %v", target, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s: got %v, want %s", target, err, want)
		}
	}
}

func TestRedirectsAreChecked(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/meta-data", http.StatusFound))
	defer server.Close()
	transport, err := Transport(Networks{Allowed: prefixes("127.0.0.1/32")}, GoldenImages, nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, ErrPrivate) {
		t.Errorf("got %v", err)
	}
}
