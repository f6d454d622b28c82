package ova

import (
	"archive/tar"
	"bytes"
	"crypto"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/ovf"
)

// blockSize is the unit in which tar archives are organized.
const blockSize = 512

// kinds are the types of tar entries in messages.
var kinds = map[byte]string{
	tar.TypeLink: "hard link", tar.TypeSymlink: "symbolic link", tar.TypeChar: "character device", tar.TypeBlock: "block device", tar.TypeDir: "directory",
	tar.TypeFifo: "pipe", tar.TypeXGlobalHeader: "global header",
}

// Member is a member of the archive.
type Member struct {
	Name string
	// Size is the size in bytes as it is stored; that of a sparse file, with its holes.
	Size int64

	offset int64
	// sparse is set if the archive leaves holes of the file out.
	sparse bool
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
	// dropped are members that the descriptor does not refer to.
	dropped []string
	digests map[string]digests
	// skipDigests is set if digests are not compared.
	skipDigests bool
}

func newContents() *contents {
	return &contents{members: map[string]Member{}, lower: map[string]string{}, digests: map[string]digests{}}
}

// admit checks the header of an entry.
func (c *contents) admit(header *tar.Header) (Member, error) {
	name, accepted := cleaned(header.Name)
	isSparse := sparse(header)
	if header.Typeflag != tar.TypeReg && !isSparse {
		kind, found := kinds[header.Typeflag]
		if !found {
			kind = fmt.Sprintf("entry of type %q", header.Typeflag)
		}
		return Member{}, fail(name, "is a %s; an OVA contains regular files only", kind)
	}
	switch {
	case isSparse && header.Size > MaxSparseBytes:
		return Member{}, fail(name, "is a sparse file of %d bytes, and may have %d; pack it again without tar's option --sparse", header.Size, MaxSparseBytes)
	case !accepted:
		return Member{}, fail(header.Name, "has a name that is not accepted: an OVA has no folders, and names of at most %d bytes without control characters; pack it again without the folder", MaxNameBytes)
	case c.lower[strings.ToLower(name)] != "":
		return Member{}, fail(name, "has the same name as the member %s", shown(c.lower[strings.ToLower(name)]))
	case len(c.members) == MaxMembers:
		return Member{}, fail(name, "is one member too many; an OVA contains at most %d", MaxMembers)
	}
	c.lower[strings.ToLower(name)] = name
	member := Member{Name: name, Size: header.Size, sparse: isSparse}
	c.members[name] = member
	return member, nil
}

// metadata reads a descriptor, manifest or certificate. It returns false if the member is another file.
func (c *contents) metadata(member Member, r io.Reader) (bool, error) {
	extension := strings.TrimPrefix(path.Ext(strings.ToLower(member.Name)), ".")
	if strings.HasPrefix(member.Name, appleDouble) {
		return false, nil
	}
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

// appleDouble begins the names of files in which macOS packs attributes of others.
const appleDouble = "._"

// expect indexes the members that hold the files of the descriptor.
func (c *contents) expect() error {
	c.expected = map[string]slot{}
	for i := range c.envelope.Files {
		f := &c.envelope.Files[i]
		if name, accepted := cleaned(f.Href); !accepted || len(name) > MaxNameBytes-len(".000000000") {
			return fail(c.descriptorName, "refers to the file %s; an OVA contains all of its files, without folders", shown(f.Href))
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
	for name, slot := range maps.Clone(c.expected) {
		// A file that is named so literally comes first.
		if other := decoded(name); other != "" && c.expected[other].file == nil {
			c.expected[other] = slot
		}
	}
	return nil
}

// member returns the member of a part, which may have the decoded name.
func (c *contents) member(name string) (Member, bool) {
	member, found := c.members[name]
	if !found {
		member, found = c.members[decoded(name)]
	}
	return member, found
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
	name, _ := cleaned(f.Href)
	if f.ChunkSize == 0 {
		return []part{{name, f.Size}}
	}
	var all []part
	for left := f.Size; left > 0 || len(all) == 0; left -= f.ChunkSize {
		all = append(all, part{fmt.Sprintf("%s.%09d", name, len(all)), min(left, f.ChunkSize)})
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
			member, found := c.member(part.name)
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
			c.dropped = append(c.dropped, name)
		}
	}
	slices.Sort(c.dropped)
	for _, name := range c.dropped {
		c.warn("file "+name, "the descriptor does not refer to it", true)
	}
	return c.checkManifest()
}

// warn adds a warning about the archive to those about the descriptor.
func (c *contents) warn(what, message string, dropped bool) {
	if len(c.envelope.Warnings) < ovf.MaxWarnings {
		c.envelope.Warnings = append(c.envelope.Warnings, ovf.Warning{Path: what, Message: message, Dropped: dropped})
	}
}

func sizeDiffers(member Member, part part) error {
	return fail(member.Name, "has %d bytes, and %d according to the descriptor", member.Size, part.size)
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
		if _, found := c.manifest.Entry(name); !found && name != c.manifestName && name != c.certificateName && !slices.Contains(c.dropped, name) {
			return fail(c.manifestName, "has no digest of the member %s", shown(name))
		}
	}
	if _, found := c.manifest.Entry(c.manifestName); found {
		c.warn(c.manifestName, "its line about itself, which can never be right, is ignored", false)
	}
	for name := range c.manifest.entries {
		if _, found := c.member(name); !found {
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
	entry, found := c.manifest.Entry(name)
	if !found || name == c.manifestName {
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
