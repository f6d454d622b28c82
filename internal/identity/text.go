package identity

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

const (
	aMAC = "a MAC address"
	anIP = "an IP address"
)

var (
	mac  = regexp.MustCompile(`(?i)\b[0-9a-f]{2}([:-])(?:[0-9a-f]{2}[:-]){4}[0-9a-f]{2}\b`)
	uuid = regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	// word matches what may be an IP address, with or without the length of its network.
	word = regexp.MustCompile(`[0-9A-Fa-f:.]+(/[0-9]+)?`)
	// between matches what separates addresses, and the brackets and quotes of JSON.
	between = regexp.MustCompile(`[\s,;"'\[\]{}]+`)
)

func macs(text string) []string { return mac.FindAllString(text, -1) }

// ips returns the IP addresses in a text, without the lengths of their networks. Addresses that are the same for every VM are not among them.
func ips(text string) []string {
	var found []string
	for _, one := range word.FindAllString(mac.ReplaceAllString(text, " "), -1) {
		bare, _, _ := strings.Cut(strings.TrimRight(one, ".:"), "/")
		address, err := netip.ParseAddr(bare)
		if err == nil && !address.IsLoopback() && !address.IsUnspecified() && !address.IsMulticast() && !strings.HasPrefix(bare, "255.") {
			found = append(found, bare)
		}
	}
	return found
}

func addresses(text string) bool { return mac.MatchString(text) || len(ips(text)) > 0 }

// onlyAddresses reports whether a text is a MAC or an IP address, or a list of them.
func onlyAddresses(text string) bool {
	parts := slices.DeleteFunc(between.Split(text, -1), func(part string) bool { return part == "" })
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(part string) bool {
		return mac.FindString(part) != part && word.FindString(part) != part || !addresses(part)
	})
}

// holds returns what of the VM's own UIDs, hosts and addresses is in a text, as a description; empty if that is nothing.
func (i *Identity) holds(text string) string {
	lower := strings.ToLower(text)
	for own, what := range i.own {
		if tokens(lower, own) > 0 {
			return what
		}
	}
	return ""
}

// isNamed reports whether the name of the VM is a word of a text.
func (i *Identity) isNamed(text string) bool { return i.name != "" && tokens(text, i.name) > 0 }

// Renamed returns the value for a text that is the name of the VM, or a path or a domain name with the name as one part; false if it is neither.
func (i *Identity) Renamed(text string) (any, bool) {
	if i.name == "" || strings.ContainsAny(text, " \t\n\"'{}[]") {
		return nil, false
	}
	var parts []string
	start := 0
	for from := 0; ; {
		at := strings.Index(text[from:], i.name)
		if at < 0 {
			break
		}
		at += from
		from = at + len(i.name)
		if boundary(text, at, from, "/.:,@=") {
			parts = append(parts, text[start:at])
			start = from
		}
	}
	if parts == nil {
		return nil, false
	}
	return i.rename(append(parts, text[start:])...), true
}

// tokens counts how often a text has a word that is not a part of a longer one.
func tokens(text, token string) int {
	count := 0
	for from := 0; ; {
		at := strings.Index(text[from:], token)
		if at < 0 {
			return count
		}
		at += from
		from = at + len(token)
		if boundary(text, at, from, "") {
			count++
		}
	}
}

// boundary reports whether text[from:to] is not a part of a longer word. Only the separators end a word, or anything but letters, digits and - if
// there are none.
func boundary(text string, from, to int, separators string) bool {
	ends := func(c byte) bool {
		if separators != "" {
			return strings.IndexByte(separators, c) >= 0
		}
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}
	return (from == 0 || ends(text[from-1])) && (to == len(text) || ends(text[to]))
}
