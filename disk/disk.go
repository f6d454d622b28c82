package disk

import (
	"fmt"
	"io"
)

// MaxSize is the largest virtual size in bytes that is read or written: 64 TiB, the limit of VHDX.
const MaxSize = int64(64) << 40

// Format names a format of disk images.
type Format string

// The formats that are read. VMDK and raw are written as well.
const (
	Raw   Format = "raw"
	QCOW2 Format = "qcow2"
	VMDK  Format = "vmdk"
	VHD   Format = "vhd"
	VHDX  Format = "vhdx"
)

// Info describes an image.
type Info struct {
	Format Format
	// Size is the virtual size in bytes, at most MaxSize.
	Size int64
	// Unit is the number of bytes that are stored together. Reads of whole units at multiples of it cost least. It is 1 for raw images.
	Unit int64
	// Compressed is true if units are stored compressed.
	Compressed bool
}

// Range is a part of the virtual disk, in bytes.
type Range struct {
	Offset, Length int64
}

// End is the first byte after the range.
func (r Range) End() int64 { return r.Offset + r.Length }

// Image is the virtual disk in an image. Its methods may be called concurrently.
type Image interface {
	// ReadAt reads from the virtual disk as io.ReaderAt. Ranges that the image does not store read as zeros.
	io.ReaderAt
	Info() Info
	// NextData returns the first range at or after an offset that the image stores. Outside these ranges the disk is zero; inside
	// it may be, too. Two successive ranges may touch. After the last range the error is io.EOF.
	NextData(offset int64) (Range, error)
}

// FormatError reports an image that is damaged, hostile, or of a kind that is not supported.
type FormatError struct {
	Format  Format
	Problem string
}

func (e *FormatError) Error() string { return string(e.Format) + ": " + e.Problem }

// Errorf returns a FormatError.
func (f Format) Errorf(format string, arguments ...any) error {
	return &FormatError{Format: f, Problem: fmt.Sprintf(format, arguments...)}
}
