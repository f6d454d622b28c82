package ova

import (
	"archive/tar"
	"bytes"
	"crypto"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/vmstencil/stencil/ovf"
)

// blockSize is the unit in which tar archives are organized.
const blockSize = 512

// memberName is stricter than the format: such a name is a single path element everywhere, and no option of a command.
var memberName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// kinds are the types of tar entries in messages.
var kinds = map[byte]string{
	tar.TypeLink: "hard link", tar.TypeSymlink: "symbolic link", tar.TypeChar: "character device", tar.TypeBlock: "block device", tar.TypeDir: "directory",
	tar.TypeFifo: "pipe", tar.TypeGNUSparse: "sparse file", tar.TypeXGlobalHeader: "global header",
}

// Member is a member of the archive.
type Member struct {
	Name string
	// Size is the size in bytes as it is stored.
	Size int64

	offset int64
}

// contents is what was read of an archive so far.
type contents struct {
	envelope                                      *ovf.Envelope
	descriptorName, manifestName, certificateName string
	descriptor, rawManifest                       []byte
	manifest                                      *Manifest
	certificate                                   *Certificate
	members                                       map[string]Member
	// expected are the members that the descriptor refers to, once it was read.
	expected map[string]slot
	lower    map[string]string
	digests  map[string]digests
	// skipDigests is set if digests are not compared.
	skipDigests bool
}

func newContents() *contents {
	return &contents{members: map[string]Member{}, lower: map[string]string{}, digests: map[string]digests{}}
}

// admit checks the header of an entry.
func (c *contents) admit(header *tar.Header) (Member, error) {
	name := header.Name
	if header.Typeflag != tar.TypeReg {
		kind, found := kinds[header.Typeflag]
		if !found {
			kind = fmt.Sprintf("entry of type %q", header.Typeflag)
		}
		return Member{}, fail(name, "is a %s; an OVA contains regular files only", kind)
	}
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return Member{}, fail(name, "is a sparse file; an OVA contains regular files only")
		}
	}
	switch {
	case !memberName.MatchString(name) || len(name) > MaxNameBytes:
		return Member{}, fail(name, "has a name that is not accepted; rename it to at most %d letters, digits, dots, hyphens and underscores, without directories, and change the descriptor and the manifest accordingly", MaxNameBytes)
	case c.lower[strings.ToLower(name)] != "":
		return Member{}, fail(name, "has the same name as the member %s", shown(c.lower[strings.ToLower(name)]))
	case len(c.members) == MaxMembers:
		return Member{}, fail(name, "is one member too many; an OVA contains at most %d", MaxMembers)
	}
	c.lower[strings.ToLower(name)] = name
	member := Member{Name: name, Size: header.Size}
	c.members[name] = member
	return member, nil
}

// metadata reads a descriptor, manifest or certificate. It returns false if the member is another file.
func (c *contents) metadata(member Member, r io.Reader) (bool, error) {
	extension := strings.TrimPrefix(path.Ext(strings.ToLower(member.Name)), ".")
	var name *string
	limit := int64(MaxManifestBytes)
	switch extension {
	case "ovf":
		name, limit = &c.descriptorName, ovf.MaxDescriptorBytes
	case "mf":
		name = &c.manifestName
	case "cert":
		name = &c.certificateName
	default:
		return false, nil
	}
	switch {
	case *name != "":
		return true, fail(member.Name, "is the second member of type .%s; an OVA contains one", extension)
	case member.Size > limit:
		return true, fail(member.Name, "is larger than %d MiB", limit>>20)
	}
	*name = member.Name
	raw, err := io.ReadAll(r)
	if err != nil {
		return true, broken(member.Name, err)
	}
	switch extension {
	case "ovf":
		if c.envelope, err = ovf.Decode(bytes.NewReader(raw)); err != nil {
			return true, err
		}
		c.descriptor = raw
		c.digests[member.Name] = sum(raw)
		return true, c.expect()
	case "mf":
		c.rawManifest = raw
		c.manifest, err = parseManifest(member.Name, raw)
	default:
		c.certificate, err = parseCertificate(member.Name, raw)
	}
	return true, err
}

// expect indexes the members that hold the files of the descriptor.
func (c *contents) expect() error {
	c.expected = map[string]slot{}
	for i := range c.envelope.Files {
		f := &c.envelope.Files[i]
		if !memberName.MatchString(f.Href) || len(f.Href) > MaxNameBytes-len(".000000000") {
			return fail(c.descriptorName, "refers to the file %s; an OVA contains all of its files, with names of letters, digits, dots, hyphens and underscores", shown(f.Href))
		}
		all := parts(f)
		if len(c.expected)+len(all) > MaxMembers {
			return fail(c.descriptorName, "refers to more than %d files and chunks", MaxMembers)
		}
		for number, part := range all {
			if _, found := c.expected[part.name]; found {
				return fail(c.descriptorName, "refers to the file %s twice", shown(part.name))
			}
			c.expected[part.name] = slot{f, all[number:]}
		}
	}
	return nil
}

// slot is what a member holds: a file from one of its parts on.
type slot struct {
	file  *ovf.File
	parts []part
}

// isFirst reports whether the member is the beginning of the file.
func (s slot) isFirst() bool {
	return s.file.ChunkSize == 0 || strings.HasSuffix(s.parts[0].name, ".000000000")
}

// part is a member that holds a file or a chunk of it.
type part struct {
	name string
	// size is -1 if it is not declared.
	size int64
}

// parts returns the members of a file.
func parts(f *ovf.File) []part {
	if f.ChunkSize == 0 {
		return []part{{f.Href, f.Size}}
	}
	var all []part
	for left := f.Size; left > 0 || len(all) == 0; left -= f.ChunkSize {
		all = append(all, part{fmt.Sprintf("%s.%09d", f.Href, len(all)), min(left, f.ChunkSize)})
	}
	return all
}

// checkReferences compares the members with the references of the descriptor.
func (c *contents) checkReferences() error {
	if c.envelope == nil {
		return fail("", "contains no OVF descriptor, a member that ends in .ovf; it may be truncated")
	}
	for i := range c.envelope.Files {
		for _, part := range parts(&c.envelope.Files[i]) {
			member, found := c.members[part.name]
			switch {
			case !found:
				return fail("", "the descriptor refers to the file %s, which is missing; the OVA may be truncated", shown(part.name))
			case part.size >= 0 && part.size != member.Size:
				return sizeDiffers(member, part)
			}
		}
	}
	for name := range c.members {
		if _, found := c.expected[name]; !found && name != c.descriptorName && name != c.manifestName && name != c.certificateName {
			return unreferenced(name)
		}
	}
	return c.checkManifest()
}

func sizeDiffers(member Member, part part) error {
	return fail(member.Name, "has %d bytes, and %d according to the descriptor", member.Size, part.size)
}

func unreferenced(name string) error {
	return fail(name, "is not referred to by the descriptor; remove it")
}

// checkManifest compares the members with the entries of the manifest, without their digests.
func (c *contents) checkManifest() error {
	if c.certificate != nil && c.manifest == nil {
		return fail(c.certificateName, "signs a manifest, and the OVA contains none")
	}
	if c.manifest == nil {
		return nil
	}
	for name := range c.members {
		if _, found := c.manifest.entries[name]; !found && name != c.manifestName && name != c.certificateName {
			return fail(c.manifestName, "has no digest of the member %s", shown(name))
		}
	}
	for name := range c.manifest.entries {
		if _, found := c.members[name]; !found {
			return fail(c.manifestName, "has a digest of %s, which the OVA does not contain; it may be truncated", shown(name))
		}
	}
	return nil
}

// checkDigest compares the digest of a member with the manifest.
func (c *contents) checkDigest(name string) error {
	if c.manifest == nil || c.skipDigests {
		return nil
	}
	entry, found := c.manifest.entries[name]
	if !found {
		return nil
	}
	computed := c.digests[name]
	if !bytes.Equal(computed[entry.Hash], entry.Digest) {
		return &Error{Member: name, Err: ErrDigest, Message: fmt.Sprintf("has the %s digest %x, and %x according to the manifest; it was changed or damaged", hashName(entry.Hash), computed[entry.Hash], entry.Digest)}
	}
	return nil
}

// digests are the digests of one member.
type digests map[crypto.Hash][]byte

// limit returns the largest size of a file's content.
func limit(e *ovf.Envelope, f *ovf.File) int64 {
	capacity := int64(0)
	for i := range e.Disks {
		if e.Disks[i].FileRef == f.ID {
			capacity = max(capacity, e.Disks[i].Capacity)
		}
	}
	if capacity == 0 {
		return MaxExpandedBytes
	}
	const overhead = 64 << 20
	if capacity > 1<<62 {
		return 1<<63 - 1
	}
	return capacity + capacity/32 + overhead
}
