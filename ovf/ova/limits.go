package ova

// Limits of OVAs, independent of their origin. Those of descriptors are in package ovf.
const (
	// MaxMembers is the maximum number of members of an archive.
	MaxMembers = 12_000

	// MaxNameBytes is the maximum length of the name of a member.
	MaxNameBytes = 255

	// MaxManifestBytes is the largest size of a manifest, and of a certificate file.
	MaxManifestBytes = 2 << 20

	// MaxCertificates is the maximum number of certificates of a signature.
	MaxCertificates = 16

	// MaxExpandedBytes is the largest size of the content of a compressed file that is not a disk of known capacity. The content of a disk may
	// exceed the disk's capacity by 1/32 and 64 MiB, for the tables of disk formats.
	MaxExpandedBytes = 16 << 30

	// MaxSparseBytes is the largest size of a sparse file, whose holes take no room in the archive: reading them takes time.
	MaxSparseBytes = 2 << 40

	// MaxDictionaryBytes is the largest dictionary that an xz file may declare, which is that of xz -9. It limits the memory of decompression.
	MaxDictionaryBytes = 64 << 20
)
