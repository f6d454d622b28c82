package ova_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/vmstencil/stencil/ovf/ova"
)

// entry is an entry of an archive. A regular file, unless change makes it another one.
type entry struct {
	name, content string
	change        func(*tar.Header)
}

// archive writes entries as they are.
func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.content)), Mode: 0o644}
		if e.change != nil {
			e.change(header)
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := io.WriteString(w, e.content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// descriptor returns a descriptor with these files and a disk of 1 MiB for the first.
func descriptor(files ...string) entry {
	var b strings.Builder
	b.WriteString(`<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"><References>`)
	for i, attributes := range files {
		fmt.Fprintf(&b, `<File ovf:id="f%d" %s/>`, i, attributes)
	}
	b.WriteString(`</References>`)
	if len(files) > 0 {
		b.WriteString(`<DiskSection><Disk ovf:diskId="d" ovf:fileRef="f0" ovf:capacity="1048576"/></DiskSection>`)
	}
	b.WriteString(`<VirtualSystem ovf:id="vm"/></Envelope>`)
	return entry{name: "vm.ovf", content: b.String()}
}

func file(name, content string) entry { return entry{name: name, content: content} }

// manifest returns a manifest of entries.
func manifest(entries ...entry) entry {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "SHA256(%s)= %x\n", e.name, sha256.Sum256([]byte(e.content)))
	}
	return entry{name: "vm.mf", content: b.String()}
}

// readStream reads all of a stream and returns the stored bytes of its files by the name of their first member.
func readStream(raw io.Reader) (map[string]string, *ova.Reader, error) {
	r := ova.NewReader(raw)
	files := map[string]string{}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, r, nil
		}
		if err != nil {
			return files, r, err
		}
		content, err := io.ReadAll(e)
		if err != nil {
			return files, r, err
		}
		files[e.Member.Name] = string(content)
	}
}

// openAndVerify opens an OVA with random access, and compares its digests if it has a manifest.
func openAndVerify(raw []byte) (*ova.Package, error) {
	p, err := ova.Open(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, err
	}
	if err := p.Verify(nil); !errors.Is(err, ova.ErrNoManifest) {
		return p, err
	}
	return p, nil
}

func gzipped(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func xzipped(t testing.TB, config xz.WriterConfig, content string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := config.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
