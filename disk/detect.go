package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MagicBytes is how many bytes of the start of an image Magic needs at most.
const MagicBytes = 512

// Magic returns the format that the start of an image names; empty for a raw disk and a fixed VHD, which name none there.
func Magic(start []byte) Format {
	for _, known := range []struct {
		magic  string
		format Format
	}{
		{"QFI\xfb", QCOW2},
		{"KDMV", VMDK},
		{"COWD", VMDK},
		{"\xbe\xba\xfe\xca\x00\x00\x00\x00", VMDK},
		{"conectix", VHD},
		{"vhdxfile", VHDX},
	} {
		if bytes.HasPrefix(start, []byte(known.magic)) {
			return known.format
		}
	}
	// The text file that lists the files of a VMware disk.
	if bytes.HasPrefix(bytes.ToLower(bytes.TrimLeft(start, " \t\r\n")), []byte("# disk descriptorfile")) {
		return VMDK
	}
	return ""
}

// Detect returns the format of an image by its magic numbers; what has none is raw. size is that of the image file in bytes.
//
// A raw disk may begin with the magic number of a format, written there by a guest to have its host read other data than the disk.
// Callers that know the format from elsewhere do not call Detect.
func Detect(r io.ReaderAt, size int64) (Format, error) {
	start := make([]byte, min(size, MagicBytes))
	if n, err := r.ReadAt(start, 0); n < len(start) && err != nil {
		return "", fmt.Errorf("reading the start of the image: %w", err)
	}
	if format := Magic(start); format != "" {
		return format, nil
	}
	// A fixed VHD has its magic number at the end only.
	if size >= 512 {
		end := make([]byte, 8)
		if _, err := r.ReadAt(end, size-512); err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("reading the end of the image: %w", err)
		}
		if string(end) == "conectix" {
			return VHD, nil
		}
	}
	return Raw, nil
}
