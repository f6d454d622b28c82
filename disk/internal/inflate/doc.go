// Package inflate decompresses DEFLATE (RFC 1951) and zlib (RFC 1950) data of a size that is known, from one buffer into another.
//
// The decoders of the standard library and of klauspost/compress read a stream of bytes and retain a window. Disk images hold many small
// streams, each complete in memory, of which a decoder without either reads several times as much in the same time. Fuzz tests compare the
// results of both.
package inflate
