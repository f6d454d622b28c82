package ova

import (
	"net/url"
	"strings"
	"unicode"
)

// cleaned returns the name of a member or of a file of a descriptor without "./" before it. It reports whether the name is accepted: a single path element
// everywhere, without control characters. The names are never paths here; renaming would break manifest and signature.
func cleaned(name string) (string, bool) {
	name = strings.TrimPrefix(name, "./")
	return name, name != "" && name != "." && name != ".." && len(name) <= MaxNameBytes && !strings.ContainsAny(name, `/\`) && !strings.ContainsFunc(name, unicode.IsControl)
}

// decoded returns the name that a reference means if it is percent-encoded, as references are URIs to the format; empty if it is not, or to no name.
func decoded(reference string) string {
	name, err := url.PathUnescape(reference)
	if err != nil || name == reference {
		return ""
	}
	if _, accepted := cleaned(name); !accepted {
		return ""
	}
	return name
}

// SameFile reports whether a member of an archive has the name of a file of its descriptor.
func SameFile(member, href string) bool {
	name, _ := cleaned(href)
	return member == name || decoded(name) == member
}
