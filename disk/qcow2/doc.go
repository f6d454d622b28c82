// Package qcow2 reads qcow2 images of versions 2 and 3 in one file, with clusters that are stored as they are or compressed by zlib or zstd.
//
// The format is that of QEMU's docs/interop/qcow2.txt. The header is checked before anything else: an image with a backing file, an external
// data file, encryption, or an incompatible feature that is unknown is rejected, and no name in it is ever opened. Extended L2 entries
// are rejected. Internal snapshots are not read, but their table is checked.
package qcow2
