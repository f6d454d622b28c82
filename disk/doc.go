// Package disk reads and writes images of disks: raw ones itself, the others in the packages below it. Package formats opens an image of any
// of them.
//
// Images are untrusted. A reader checks the header first, and then all tables, so that an image is rejected before any of its data is read.
// It opens no file but the one that it is given, whatever names the image has. Memory is bounded by the limits of each format, not by
// the size of the disk: a table of up to 32 MiB where a format needs it at once, a few MiB of cached tables, and buffers of 1 to 2 MiB for each
// worker. Each unit of a disk is stored in a place of its own, so that no image has more data than its file, except by compression, which
// the size of the disk bounds. Callers check Info.Size before they read.
//
// Everything is sparse: what an image does not store is neither read nor written, and blocks of zeros become holes.
package disk
