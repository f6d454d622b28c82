package ova

import (
	"archive/tar"
	"io"
	"strings"
	"sync"
)

// sparse reports whether the archive leaves holes of a file out, in one of GNU tar's four ways: a type of entry of its own, and three sets of
// PAX records (https://www.gnu.org/software/tar/manual/html_node/Sparse-Formats.html). Package tar reads all of them as the whole file.
func sparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return header.Typeflag == tar.TypeGNUSparse
}

// sparseFile reads a sparse member with random access. Package tar says where the holes are only by reading, so that a read before the previous one begins
// again: what reads disks goes forward.
type sparseFile struct {
	archive *io.SectionReader
	name    string

	mutex sync.Mutex
	in    *tar.Reader
	at    int64
}

// ReadAt is safe for concurrent use.
func (s *sparseFile) ReadAt(b []byte, at int64) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.in == nil || at < s.at {
		if err := s.begin(); err != nil {
			return 0, err
		}
	}
	skipped, err := io.CopyN(io.Discard, s.in, at-s.at)
	s.at += skipped
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(s.in, b)
	s.at += int64(n)
	return n, err
}

// begin goes to the beginning of the member. The content of members before it is not read.
func (s *sparseFile) begin() error {
	s.in, s.at = tar.NewReader(io.NewSectionReader(s.archive, 0, s.archive.Size())), 0
	for {
		header, err := s.in.Next()
		if err != nil {
			s.in = nil
			return err
		}
		if name, _ := cleaned(header.Name); name == s.name {
			return nil
		}
	}
}
