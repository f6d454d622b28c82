package ova

import (
	"bytes"
	"crypto"
	_ "crypto/sha1" // for manifests of older exporters
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"regexp"
	"strings"
	"sync"
)

// Manifest lists the digests of the members.
type Manifest struct {
	// entries are by the names of the manifest; decoded are those of names that are percent-encoded, by what they mean.
	entries, decoded map[string]ManifestEntry
}

// ManifestEntry is the digest of a member.
type ManifestEntry struct {
	// Hash is SHA-1, SHA-256, SHA-384 or SHA-512.
	Hash   crypto.Hash
	Digest []byte
}

// Entry returns the digest of a member.
func (m *Manifest) Entry(name string) (ManifestEntry, bool) {
	entry, found := m.entries[name]
	if !found {
		entry, found = m.decoded[name]
	}
	return entry, found
}

// Weak reports whether a digest is SHA-1, for which a different content with the same digest can be made.
func (m *Manifest) Weak() bool {
	for _, entry := range m.entries {
		if entry.Hash == crypto.SHA1 {
			return true
		}
	}
	return false
}

// hashes are the accepted algorithms by the name of the format.
var hashes = map[string]crypto.Hash{"SHA1": crypto.SHA1, "SHA256": crypto.SHA256, "SHA384": crypto.SHA384, "SHA512": crypto.SHA512}

// spellings replaces the names that OpenSSL 3 prints, and for signatures, by those of the format.
var spellings = strings.NewReplacer("RSA-", "", "SHA2-", "SHA", "SHA-", "SHA")

func hashName(h crypto.Hash) string {
	for name, hash := range hashes {
		if hash == h {
			return name
		}
	}
	return h.String()
}

// digestLine is a line of a manifest. The format has no space but the one after the equals sign; OpenSSL and some exporters write others.
var digestLine = regexp.MustCompile(`^\s*([A-Za-z0-9-]+)\s*\((.*)\)\s*=\s*([0-9A-Fa-f]+)\s*$`)

// parseLine parses a line of a manifest or the first line of a certificate file.
func parseLine(line string) (name string, h crypto.Hash, value []byte, err error) {
	match := digestLine.FindStringSubmatch(line)
	if match == nil {
		return "", 0, nil, fmt.Errorf("is %s; want ALGORITHM(FILE)= HEX", shown(line))
	}
	h, found := hashes[spellings.Replace(strings.ToUpper(match[1]))]
	if !found {
		return "", 0, nil, fmt.Errorf("has the algorithm %s; want SHA1, SHA256, SHA384 or SHA512", shown(match[1]))
	}
	if value, err = hex.DecodeString(match[3]); err != nil {
		return "", 0, nil, fmt.Errorf("has an odd number of digits")
	}
	return match[2], h, value, nil
}

func parseManifest(file string, raw []byte) (*Manifest, error) {
	m := &Manifest{entries: map[string]ManifestEntry{}, decoded: map[string]ManifestEntry{}}
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(raw, []byte("\ufeff"))) {
		number++
		text := strings.TrimRight(string(line), "\r\n")
		if strings.TrimSpace(text) == "" {
			continue
		}
		name, h, digest, err := parseLine(text)
		switch {
		case err != nil:
			return nil, fail(file, "line %d %v", number, err)
		case len(digest) != h.Size():
			return nil, fail(file, "line %d has %d digits; a digest of %s has %d", number, 2*len(digest), hashName(h), 2*h.Size())
		case len(m.entries) == MaxMembers:
			return nil, fail(file, "has more than %d digests", MaxMembers)
		}
		name, _ = cleaned(name)
		if _, found := m.entries[name]; found {
			return nil, fail(file, "line %d is the second digest of %s", number, shown(name))
		}
		m.entries[name] = ManifestEntry{h, digest}
		if other := decoded(name); other != "" {
			m.decoded[other] = ManifestEntry{h, digest}
		}
	}
	if len(m.entries) == 0 {
		return nil, fail(file, "contains no digest")
	}
	return m, nil
}

// line formats a line of a manifest as VMware's and DMTF's documents do.
func line(name string, digest []byte) string { return fmt.Sprintf("SHA256(%s)= %x\n", name, digest) }

// hasher computes digests of one member.
type hasher map[crypto.Hash]hash.Hash

// newHasher computes SHA-256, and the digest that the manifest has; before it is read, all that it may have.
func newHasher(m *Manifest, name string) hasher {
	h := hasher{crypto.SHA256: crypto.SHA256.New()}
	if m != nil {
		if entry, found := m.Entry(name); found {
			h[entry.Hash] = entry.Hash.New()
		}
		return h
	}
	for _, algorithm := range hashes {
		h[algorithm] = algorithm.New()
	}
	return h
}

// parallelBytes is the size of writes from which several digests are computed at the same time.
const parallelBytes = 16 << 10

func (h hasher) Write(p []byte) (int, error) {
	if len(h) == 1 || len(p) < parallelBytes {
		for _, each := range h {
			// A hash never returns an error.
			_, _ = each.Write(p)
		}
		return len(p), nil
	}
	var group sync.WaitGroup
	for _, each := range h {
		group.Go(func() { _, _ = each.Write(p) })
	}
	group.Wait()
	return len(p), nil
}

func (h hasher) sums() digests {
	d := digests{}
	for algorithm, each := range h {
		d[algorithm] = each.Sum(nil)
	}
	return d
}

func sum(raw []byte) digests {
	h := newHasher(nil, "")
	_, _ = h.Write(raw)
	return h.sums()
}
