// Package rawzstd writes raw disks as zstd (RFC 8878), and expands such streams.
//
// Each MiB of a disk is a frame of its own, so that frames are compressed in parallel, the stream does not depend on the number of workers, and it can
// be continued from any byte. Frames one after another are one stream for every decoder (RFC 8878, section 3). A MiB of zeros has 41 bytes, and is not read
// where the image has a hole.
package rawzstd
