package ova

import (
	"archive/tar"
	"bytes"
	"fmt"
	"time"

	"github.com/vmstencil/stencil/ovf"
)

// FolderFiles returns the names of the files that are in a folder with a descriptor of a name, in the order of the descriptor, and those of chunks. With a
// Header before each, they are an OVA.
func FolderFiles(name string, descriptor []byte) (files []string, err error) {
	c := newContents()
	c.descriptorName = name
	if c.envelope, err = ovf.Decode(bytes.NewReader(descriptor)); err != nil {
		return nil, err
	}
	if err := c.expect(); err != nil {
		return nil, err
	}
	for i := range c.envelope.Files {
		for _, part := range parts(&c.envelope.Files[i]) {
			files = append(files, part.name)
		}
	}
	return files, nil
}

// Header returns the header of a member of an archive.
func Header(name string, size int64) ([]byte, error) {
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(header(name, size, time.Unix(0, 0))); err != nil {
		return nil, fmt.Errorf("the member %s of an OVA: %w", shown(name), err)
	}
	return b.Bytes(), nil
}
