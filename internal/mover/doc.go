// Package mover does what package transfer specifies: it inspects and imports packages, and exports templates as packages.
//
// An import reads its source once, as a stream, and writes each disk as it passes: streamOptimized VMDK, ISO images, and zstd of OCI artifacts, also where a
// file is compressed by gzip or xz. Disks of other formats (VHD, qcow2, VMDK with its tables in front), and disks that come before the descriptor, are read
// again by random access after the stream was verified. That needs a server with ranges or a PersistentVolumeClaim, and a file that is not compressed where
// the format needs random access; otherwise the import fails with the reason Unsupported.
//
// Disks may hold parts of the content when an import fails. Nothing that was written counts before the State is Succeeded.
//
// An export writes NAME.partial in the result volume, then result.json, and then renames the package, so that a mover that starts again either serves the
// package or begins again.
package mover
