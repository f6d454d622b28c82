package debian

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Limits of a lock file. The largest package of the compilers has 53 MB.
const (
	maxPackages     = 512
	maxPackageBytes = 64 << 20
)

// Package is one version of a package.
type Package struct {
	Name, Version, Architecture string
	// Size is the size of the file in bytes.
	Size int64
	// SHA256 is the checksum of the file in hexadecimal.
	SHA256 string
	// Path is the place of the file in Debian's archives, such as debian/pool/main/z/zlib/zlib1g_1.2.13_amd64.deb.
	Path string
	// Distribution is the release of Debian, as package URLs have it, such as debian-12.
	Distribution string
}

// URL returns the package URL of the package, by which scanners find it, see https://github.com/package-url/purl-spec.
func (p Package) URL() string {
	return "pkg:deb/debian/" + p.Name + "@" + escape(p.Version) + "?arch=" + p.Architecture + "&distro=" + p.Distribution
}

// escape percent-encodes the characters of versions that are encoded in package URLs.
func escape(version string) string {
	return strings.NewReplacer("%", "%25", "+", "%2B", ":", "%3A").Replace(version)
}

// Lock is the content of a lock file.
type Lock struct {
	// Snapshot is a time at which https://snapshot.debian.org has all packages, such as 20261126T000000Z.
	Snapshot string
	// Distribution of all packages.
	Distribution string
	// Architecture of the packages that are not for all: amd64 or arm64.
	Architecture string
	// Packages are sorted by name.
	Packages []Package
}

var (
	snapshotPattern     = regexp.MustCompile(`^\d{8}T\d{6}Z$`)
	distributionPattern = regexp.MustCompile(`^debian-[1-9][0-9]$`)
	namePattern         = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	versionPattern      = regexp.MustCompile(`^[0-9][A-Za-z0-9.+:~-]*$`)
	pathPattern         = regexp.MustCompile(`^debian(-security)?/pool/[A-Za-z0-9._+~%/-]+\.deb$`)
)

const header = `# Debian packages: name, version, architecture, size in bytes, SHA-256, place in Debian's archives.
# Written by 'make debian-lock'.
`

// Parse decodes a lock file.
func Parse(text []byte) (*Lock, error) {
	lock := &Lock{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := lock.parse(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("line %d of the lock file: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the lock file: %w", err)
	}
	if lock.Snapshot == "" || lock.Distribution == "" || len(lock.Packages) == 0 {
		return nil, fmt.Errorf("the lock file has %d packages, the snapshot %q and the distribution %q: want all three", len(lock.Packages), lock.Snapshot, lock.Distribution)
	}
	for i := range lock.Packages {
		lock.Packages[i].Distribution = lock.Distribution
	}
	if len(lock.Packages) > maxPackages {
		return nil, fmt.Errorf("the lock file has %d packages: at most %d are supported", len(lock.Packages), maxPackages)
	}
	return lock, nil
}

func (l *Lock) parse(fields []string) error {
	switch len(fields) {
	case 2:
		switch {
		case fields[0] == "snapshot" && snapshotPattern.MatchString(fields[1]):
			l.Snapshot = fields[1]
		case fields[0] == "distribution" && distributionPattern.MatchString(fields[1]):
			l.Distribution = fields[1]
		default:
			return fmt.Errorf("want snapshot and a time such as 20261126T000000Z, or distribution and a name such as debian-12, not %q", fields)
		}
		return nil
	case 6:
	default:
		return fmt.Errorf("%d fields: want name, version, architecture, size, SHA-256 and path", len(fields))
	}
	p := Package{Name: fields[0], Version: fields[1], Architecture: fields[2], SHA256: fields[4], Path: fields[5]}
	var err error
	if p.Size, err = strconv.ParseInt(fields[3], 10, 64); err != nil || p.Size <= 0 || p.Size > maxPackageBytes {
		return fmt.Errorf("size %q: want a number of bytes up to %d", fields[3], maxPackageBytes)
	}
	sum, err := hex.DecodeString(p.SHA256)
	switch {
	case !namePattern.MatchString(p.Name):
		return fmt.Errorf("%q is no name of a package", p.Name)
	case !versionPattern.MatchString(p.Version):
		return fmt.Errorf("%q is no version of a package", p.Version)
	case !slices.Contains([]string{"amd64", "arm64", "all"}, p.Architecture):
		return fmt.Errorf("architecture %q: want amd64, arm64 or all", p.Architecture)
	case p.Architecture != "all" && l.Architecture != "" && p.Architecture != l.Architecture:
		return fmt.Errorf("architecture %q: packages before are for %s", p.Architecture, l.Architecture)
	case err != nil || len(sum) != 32 || strings.ToLower(p.SHA256) != p.SHA256:
		return fmt.Errorf("%q is no SHA-256 in lower case", p.SHA256)
	case !pathPattern.MatchString(p.Path) || !fs.ValidPath(p.Path):
		return fmt.Errorf("path %q: want debian/pool/… or debian-security/pool/… of a .deb", p.Path)
	}
	if n := len(l.Packages); n > 0 && l.Packages[n-1].Name >= p.Name {
		return fmt.Errorf("%s is after %s: packages are sorted by name, each once", p.Name, l.Packages[n-1].Name)
	}
	if p.Architecture != "all" {
		l.Architecture = p.Architecture
	}
	l.Packages = append(l.Packages, p)
	return nil
}

// Marshal encodes the lock file.
func (l *Lock) Marshal() []byte {
	var text bytes.Buffer
	text.WriteString(header + "distribution " + l.Distribution + "\nsnapshot " + l.Snapshot + "\n")
	for _, p := range l.Packages {
		fmt.Fprintf(&text, "%s %s %s %d %s %s\n", p.Name, p.Version, p.Architecture, p.Size, p.SHA256, p.Path)
	}
	return text.Bytes()
}

// archive returns the archive of the package, and its path there.
func (p Package) archive() (archive, path string) {
	archive, path, _ = strings.Cut(p.Path, "/")
	return archive, path
}
