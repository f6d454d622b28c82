package outbound

import (
	"fmt"
	"net/netip"
	"slices"
)

// Networks are networks that the cluster admin configures.
type Networks struct {
	// Allowed are networks that are not public and may be connected to.
	Allowed []netip.Prefix
	// Cluster are the cluster's own networks, of nodes, pods and Services. They are denied, also if they are public or within a wider network that is
	// allowed. An allowed network within one of them is an exception.
	Cluster []netip.Prefix
}

// check returns an error if an address must not be connected to. value is the chart's value with the allowed networks, for messages.
func (n Networks) check(ip netip.Addr, value string) error {
	ip = ip.Unmap().WithZone("")
	if n.denies(ip) {
		return fmt.Errorf("%s: %w: allow its network in the chart's value %s", ip, ErrPrivate, value)
	}
	return nil
}

// denies reports whether an address, or an IPv4 address that is embedded in it, is denied. An allowed network permits the addresses that it contains
// itself, and those that embed them only where these are permitted, too.
func (n Networks) denies(ip netip.Addr) bool {
	if !ip.IsValid() {
		return true
	}
	if inner, found := embedded(ip); found && n.denies(inner) {
		return true
	}
	own := narrowest(slices.Concat(metadata, n.Cluster), ip)
	if allowed := narrowest(n.Allowed, ip); allowed >= 0 {
		return allowed < own
	}
	return own >= 0 || !isPublic(ip)
}

// narrowest returns the length of the longest prefix that contains an address, and -1 if none does.
func narrowest(networks []netip.Prefix, ip netip.Addr) int {
	longest := -1
	for _, network := range networks {
		bits, address := network.Bits(), network.Addr()
		if address.Is4In6() && bits >= mappedBits {
			address, bits = address.Unmap(), bits-mappedBits
		}
		if network := netip.PrefixFrom(address, bits); network.Contains(ip) {
			longest = max(longest, bits)
		}
	}
	return longest
}

// mappedBits is the length of the prefix of IPv4-mapped addresses.
const mappedBits = 96

// isPublic reports whether an address is a unicast address of the internet, without regard to what is embedded in it.
func isPublic(ip netip.Addr) bool {
	if nat64.Contains(ip) {
		return true
	}
	if ip.Is6() && !allocated.Contains(ip) {
		return false
	}
	return ip.IsGlobalUnicast() && !slices.ContainsFunc(special, func(network netip.Prefix) bool { return network.Contains(ip) })
}

// embedded returns the IPv4 address to which an IPv6 address leads, if it has one.
func embedded(ip netip.Addr) (netip.Addr, bool) {
	if ip.Is4() {
		return netip.Addr{}, false
	}
	bytes := ip.As16()
	at := func(from int) (netip.Addr, bool) { return netip.AddrFrom4([4]byte(bytes[from : from+4])), true }
	switch {
	case mapped.Contains(ip), translated.Contains(ip), compatible.Contains(ip) && bytes[12] != 0, nat64.Contains(ip):
		return at(12)
	case sixToFour.Contains(ip):
		return at(2)
	case teredo.Contains(ip):
		for i := 12; i < len(bytes); i++ {
			bytes[i] = ^bytes[i]
		}
		return at(12)
	case (bytes[8] == 0 || bytes[8] == 2) && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe:
		return at(12) // ISATAP (RFC 5214)
	default:
		return netip.Addr{}, false
	}
}

var (
	mapped     = netip.MustParsePrefix("::ffff:0:0/96")   // RFC 4291
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291, deprecated
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380

	// allocated has all public unicast addresses of IPv6.
	allocated = netip.MustParsePrefix("2000::/3")
)

// metadata are addresses at which platforms serve credentials and settings of the host. A network that is allowed does not include them, unless it is one
// of them.
var metadata = prefixes(
	"169.254.169.254/32", // AWS, Azure, GCP, OpenStack, Oracle and others
	"169.254.169.253/32", // AWS, name server
	"169.254.169.123/32", // AWS, time
	"169.254.170.2/32",   // AWS, credentials of tasks
	"169.254.170.23/32",  // AWS, credentials of pods
	"169.254.42.42/32",   // Scaleway
	"169.254.0.23/32",    // Tencent
	"169.254.10.10/32",   // Tencent
	"100.100.100.200/32", // Alibaba
	"168.63.129.16/32",   // Azure, public
	"192.0.0.192/32",     // Oracle
	"fd00:ec2::254/128",  // AWS
	"fd00:ec2::253/128",  // AWS, name server
	"fd00:ec2::123/128",  // AWS, time
	"fd00:ec2::23/128",   // AWS, credentials of pods
	"fd20:ce::254/128",   // GCP
	"fd00:42::42/128",    // Scaleway
	"fe80::a9fe:a9fe/128",
)

// special are the networks of the IPv4 and IPv6 Special-Purpose Address Registries of IANA, and those that were in them. Networks of IPv6 outside of
// 2000::/3 are not public anyway.
var special = prefixes(
	"0.0.0.0/8",         // this host (RFC 791)
	"10.0.0.0/8",        // private (RFC 1918)
	"100.64.0.0/10",     // carriers and their customers (RFC 6598), which clusters use for pods
	"127.0.0.0/8",       // loopback (RFC 1122)
	"169.254.0.0/16",    // link-local (RFC 3927)
	"172.16.0.0/12",     // private (RFC 1918)
	"192.0.0.0/24",      // protocols (RFC 6890)
	"192.0.2.0/24",      // documentation (RFC 5737)
	"192.31.196.0/24",   // AS112 (RFC 7535)
	"192.52.193.0/24",   // AMT (RFC 7450)
	"192.88.99.0/24",    // relays of 6to4, deprecated (RFC 7526)
	"192.168.0.0/16",    // private (RFC 1918)
	"192.175.48.0/24",   // AS112 (RFC 7534)
	"198.18.0.0/15",     // benchmarks (RFC 2544)
	"198.51.100.0/24",   // documentation (RFC 5737)
	"203.0.113.0/24",    // documentation (RFC 5737)
	"224.0.0.0/4",       // multicast (RFC 5771)
	"240.0.0.0/4",       // reserved (RFC 1112), which some networks use nevertheless
	"2001::/23",         // protocols, Teredo and ORCHID among them (RFC 2928)
	"2001:db8::/32",     // documentation (RFC 3849)
	"2002::/16",         // 6to4 (RFC 3056)
	"2620:4f:8000::/48", // AS112 (RFC 7534)
	"3ffe::/16",         // 6bone, returned (RFC 3701)
	"3fff::/20",         // documentation (RFC 9637)
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}
