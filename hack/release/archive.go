package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive, or a symbolic link if link is set.
type entry struct {
	name    string
	mode    int64
	content []byte
	link    string
}

// sorted returns the entries by name.
func sorted(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.name, b.name) })
}

// tarGz returns a compressed tar archive, which depends on the entries and the time only. Folders of files precede them.
func tarGz(entries []entry, at time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	folders := map[string]bool{".": true}
	for _, each := range sorted(entries) {
		for _, folder := range missing(path.Dir(each.name), folders) {
			header := tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: at, Format: tar.FormatPAX}
			if err := archive.WriteHeader(&header); err != nil {
				return nil, fmt.Errorf("archiving %s: %w", folder, err)
			}
		}
		header := tar.Header{Typeflag: tar.TypeReg, Name: each.name, Mode: each.mode, Size: int64(len(each.content)), ModTime: at, Format: tar.FormatPAX}
		if each.link != "" {
			header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, each.link, 0o777
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", each.name, err)
		}
		if _, err := archive.Write(each.content); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", each.name, err)
		}
	}
	for _, each := range []io.Closer{archive, compressed} {
		if err := each.Close(); err != nil {
			return nil, fmt.Errorf("closing an archive: %w", err)
		}
	}
	return buffer.Bytes(), nil
}

// missing returns a folder and its parents, from the top, that are not among those that exist, and adds them there.
func missing(folder string, existing map[string]bool) []string {
	if existing[folder] {
		return nil
	}
	existing[folder] = true
	return append(missing(path.Dir(folder), existing), folder)
}

// zipped returns a zip archive, which depends on the entries and the time only.
func zipped(entries []entry, at time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for _, each := range sorted(entries) {
		file, err := archive.CreateHeader(&zip.FileHeader{Name: each.name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return nil, fmt.Errorf("archiving %s: %w", each.name, err)
		}
		if _, err := file.Write(each.content); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", each.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("closing an archive: %w", err)
	}
	return buffer.Bytes(), nil
}
