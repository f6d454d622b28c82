package outbound

import (
	"errors"
	"net/netip"
	"testing"
)

func TestAddressesThatAreNotPublicAreDenied(t *testing.T) {
	const denied = ": the address is not public: allow its network in the chart's value goldenImages.allowedNetworks"
	for address, public := range map[string]bool{
		"8.8.8.8": true, "2001:4860:4860::8888": true, "::ffff:8.8.8.8": true, "100.128.0.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "::ffff:127.0.0.1": false,
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "::ffff:10.1.2.3": false, "fd00::1": false,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false,
		"100.64.0.1": false, "100.127.255.255": false, "::ffff:100.64.0.1": false,
		"224.0.0.1": false, "ff02::1": false, "0.0.0.0": false, "::": false, "255.255.255.255": false, "0.1.2.3": false,
		"64:ff9b::a01:203": false, "64:ff9b::808:808": true, "64:ff9b:1::a01:203": false, "2002:a01:203::1": false, "::a01:203": false, "240.0.0.1": false,
		"198.18.0.1": false, "192.0.0.1": false, "2001::a01:203": false, "fec0::1": false,
	} {
		t.Run(address, func(t *testing.T) {
			parsed := netip.MustParseAddr(address)
			err := check(nil, GoldenImages, netip.AddrPortFrom(parsed, 443).String())
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
	t.Run("an allowed network", func(t *testing.T) {
		allowed := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
		if err := check(allowed, Transfers, "[::ffff:10.1.2.3]:443"); err != nil {
			t.Error(err)
		}
		if err := check(allowed, Transfers, "10.2.0.1:443"); !errors.Is(err, ErrPrivate) {
			t.Error(err)
		}
	})
}
