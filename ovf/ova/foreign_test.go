package ova_test

import (
	"bytes"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/ovf/ova"
)

// TestPackagesOfOthers reads archives that other programs write: names that are no paths, files that the descriptor does not know, lines of a manifest that are not
// in the form of the format.
func TestPackagesOfOthers(t *testing.T) {
	named := func(href, member string) []entry {
		described, content := descriptor(`ovf:href="`+href+`"`), file(member, "disk")
		return []entry{described, manifest(described, content), content}
	}
	described, disk := descriptor(`ovf:href="a"`), file("a", "disk")
	bom := manifest(described, disk)
	bom.content = "\ufeff" + bom.content
	own := manifest(described, disk)
	own.content += "SHA256(vm.mf)= " + strings.Repeat("0", 64) + "\n"
	const dropped = ": the descriptor does not refer to it"
	for name, tc := range map[string]struct {
		entries []entry
		// member is the name of the file's member.
		member   string
		warnings []string
	}{
		"a space":                             {named("web server-disk001.vmdk", "web server-disk001.vmdk"), "web server-disk001.vmdk", nil},
		"a plus":                              {named("fw-7.4+build2.vmdk", "fw-7.4+build2.vmdk"), "fw-7.4+build2.vmdk", nil},
		"parentheses":                         {named("srv(1).vmdk", "srv(1).vmdk"), "srv(1).vmdk", nil},
		"a tilde and a hyphen first":          {named("-a~1.vmdk", "-a~1.vmdk"), "-a~1.vmdk", nil},
		"another letter":                      {named("b\u00fcro.vmdk", "b\u00fcro.vmdk"), "b\u00fcro.vmdk", nil},
		"a percent sign":                      {named("50%.vmdk", "50%.vmdk"), "50%.vmdk", nil},
		"a reference that is percent-encoded": {named("web%20server.vmdk", "web server.vmdk"), "web server.vmdk", nil},
		"a name that looks percent-encoded":   {named("web%20server.vmdk", "web%20server.vmdk"), "web%20server.vmdk", nil},
		"a member in the folder itself":       {named("a", "./a"), "a", nil},
		"a reference to the folder itself":    {named("./a", "a"), "a", nil},
		"a digest of the folder itself":       {[]entry{described, manifest(described, file("./a", "disk")), disk}, "a", nil},
		"a digest of an encoded name":         {[]entry{descriptor(`ovf:href="a b"`), manifest(descriptor(`ovf:href="a b"`), file("a%20b", "disk")), file("a b", "disk")}, "a b", nil},
		"NVRAM":                               {[]entry{described, manifest(described, disk, file("vm.nvram", "x")), disk, file("vm.nvram", "x")}, "a", []string{"file vm.nvram" + dropped}},
		"a file that has no digest":           {[]entry{described, manifest(described, disk), disk, file("README.txt", "x")}, "a", []string{"file README.txt" + dropped}},
		"a file before all others":            {[]entry{file("README.txt", "x"), described, disk}, "a", []string{"file README.txt" + dropped}},
		"attributes of macOS":                 {[]entry{file("._vm.ovf", "x"), described, file("._a", "x"), disk}, "a", []string{"file ._a" + dropped, "file ._vm.ovf" + dropped}},
		"a manifest of itself":                {[]entry{described, own, disk}, "a", []string{"vm.mf: its line about itself, which can never be right, is ignored"}},
		"a byte order mark":                   {[]entry{described, bom, disk}, "a", nil},
		"SHA-384":                             {[]entry{described, file("vm.mf", fmt.Sprintf("SHA384(vm.ovf)= %x\nSHA384(a)= %x\n", sha512.Sum384([]byte(described.content)), sha512.Sum384([]byte("disk")))), disk}, "a", nil},
		"chunks of an encoded name":           {[]entry{descriptor(`ovf:href="a%20b" ovf:size="4" ovf:chunkSize="3"`), file("a b.000000000", "dis"), file("a b.000000001", "k")}, "a b.000000000", nil},
	} {
		t.Run(name, func(t *testing.T) {
			raw := archive(t, tc.entries...)
			p, err := openAndVerify(raw)
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(p.Raw(&p.Envelope().Files[0]))
			if err != nil || string(content) != "disk" {
				t.Errorf("random access: %q, %v", content, err)
			}
			files, r, err := readStream(bytes.NewReader(raw))
			if err != nil || files[tc.member] != "disk" {
				t.Errorf("stream: %q, %v", files, err)
			}
			var got [2][]string
			for _, w := range p.Envelope().Warnings {
				got[0] = append(got[0], w.Path+": "+w.Message)
			}
			for _, w := range r.Envelope().Warnings {
				got[1] = append(got[1], w.Path+": "+w.Message)
			}
			if diff := cmp.Diff([2][]string{tc.warnings, tc.warnings}, got); diff != "" {
				t.Errorf("warnings of random access and stream (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAManifestStillCounts has a digest of a dropped file that is wrong.
func TestAManifestStillCounts(t *testing.T) {
	described, disk := descriptor(`ovf:href="a"`), file("a", "disk")
	raw := archive(t, described, manifest(described, disk, file("b", "x")), disk, file("b", "y"))
	if _, err := openAndVerify(raw); !errors.Is(err, ova.ErrDigest) {
		t.Errorf("random access: %v", err)
	}
	if _, _, err := readStream(bytes.NewReader(raw)); !errors.Is(err, ova.ErrDigest) {
		t.Errorf("stream: %v", err)
	}
}

// TestGzipThatTheDescriptorDoesNotSay reads a disk that is compressed, and an archive that is.
func TestGzipThatTheDescriptorDoesNotSay(t *testing.T) {
	packed := gzipped(t, "the content of a disk")
	described, disk := descriptor(`ovf:href="a.gz"`, `ovf:href="b.gz"`), file("a.gz", packed)
	// Of other files than disks it is not known what they are for.
	other := file("b.gz", packed)
	raw := archive(t, described, manifest(described, disk, other), disk, other)
	p, err := openAndVerify(raw)
	if err != nil {
		t.Fatal(err)
	}
	const want = "it is compressed with gzip, and the descriptor does not say so"
	for n, tc := range []struct{ content, compression string }{{"the content of a disk", "gzip"}, {packed, ""}} {
		f := &p.Envelope().Files[n]
		r, err := p.Content(f)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(r); err != nil || string(content) != tc.content || f.Compression != tc.compression {
			t.Errorf("%s: %q, %v, %q", f.Href, content, err, f.Compression)
		}
	}
	if w := p.Envelope().Warnings; len(w) != 1 || w[0].Path != "file a.gz" || w[0].Message != want {
		t.Errorf("warnings: %v", w)
	}
	stream := ova.NewReader(bytes.NewReader(raw))
	entry, err := stream.Next()
	if err != nil {
		t.Fatal(err)
	}
	content, err := entry.Content()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(content); err != nil || string(got) != "the content of a disk" {
		t.Errorf("stream: %q, %v", got, err)
	}
	if w := stream.Envelope().Warnings; len(w) != 1 || w[0].Message != want {
		t.Errorf("warnings of the stream: %v", w)
	}

	whole := []byte(gzipped(t, string(raw)))
	const message = "OVA: is compressed with gzip as a whole: gunzip it"
	_, err = openAndVerify(whole)
	checkError(t, "random access", message, err)
	_, _, err = readStream(bytes.NewReader(whole))
	checkError(t, "stream", message, err)
}
