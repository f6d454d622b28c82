package web

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	// Lines of checksum files: of GNU coreutils, HASH, a blank, a blank or an asterisk, and the name; of BSD, ALGORITHM (NAME) = HASH.
	gnuLine = regexp.MustCompile(`^([0-9A-Za-z]+) [ *]?(.+)$`)
	bsdLine = regexp.MustCompile(`^([A-Za-z0-9-]+) ?\((.+)\) ?= ?([0-9A-Za-z]+)$`)
	oneWord = regexp.MustCompile(`^[0-9A-Fa-f]{32,128}$`)
	hexText = regexp.MustCompile(`^[0-9a-f]+$`)
)

// Numbers of hexadecimal digits of checksums.
const (
	digitsMD5    = 32
	digitsSHA1   = 40
	digitsSHA256 = 64
	digitsSHA512 = 128
)

// find returns the checksum of a file in a file of checksums, as ALGORITHM:HEX. Lines of other files are disregarded, and signatures around them.
func find(text, name string) (string, error) {
	found, weak := map[string]string{}, false
	add := func(hash string) error {
		hash = strings.ToLower(hash)
		algorithm := map[int]string{digitsSHA256: "sha256:", digitsSHA512: "sha512:"}[len(hash)]
		switch {
		case len(hash) == digitsMD5, len(hash) == digitsSHA1:
			weak = true
			return nil
		case algorithm == "" || !hexText.MatchString(hash):
			return fmt.Errorf("has a line for %s without a checksum by SHA-256 or SHA-512", name)
		case found[algorithm] != "" && found[algorithm] != hash:
			return fmt.Errorf("has several checksums of %s", name)
		}
		found[algorithm] = hash
		return nil
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 1 && oneWord.MatchString(lines[0]) {
		if err := add(lines[0]); err != nil {
			return "", err
		}
	}
	for _, line := range lines {
		hash, of := "", ""
		if parts := bsdLine.FindStringSubmatch(line); parts != nil {
			hash, of = parts[3], parts[2]
		} else if parts := gnuLine.FindStringSubmatch(line); parts != nil {
			hash, of = parts[1], parts[2]
		}
		if strings.TrimPrefix(of, "./") != name {
			continue
		}
		if err := add(hash); err != nil {
			return "", err
		}
	}
	for _, algorithm := range []string{"sha256:", "sha512:"} {
		if found[algorithm] != "" {
			return algorithm + found[algorithm], nil
		}
	}
	if weak {
		return "", errors.New("has only a checksum by MD5 or SHA-1 of " + name + ", which are too weak: use a file with SHA-256 or SHA-512")
	}
	return "", fmt.Errorf("has no line for %s: it must have its checksum by SHA-256 or SHA-512", name)
}
