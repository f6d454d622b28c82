package ova_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ulikunitz/xz"

	"github.com/vmstencil/stencil/ovf/ova"
)

// kind makes an entry of a type other than a regular file.
func kind(flag byte, target string) func(*tar.Header) {
	return func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = flag, target, 0 }
}

func TestHostileArchivesAreRejected(t *testing.T) {
	described := descriptor(`ovf:href="a"`)
	a := file("a", "disk")
	for name, tc := range map[string]struct {
		entries []entry
		want    string
		// wantStream is the error of the stream if it is another one.
		wantStream string
	}{
		"a path to a parent": {entries: []entry{described, file("../a", "x")}, want: `OVA, member "../a": has a name that is not accepted: an OVA has no folders, and names of at most 255 bytes without control characters; pack it again without the folder`},
		"an absolute path":   {entries: []entry{described, file("/etc/passwd", "x")}, want: `OVA, member "/etc/passwd": has a name that is not accepted: an OVA has no folders, and names of at most 255 bytes without control characters; pack it again without the folder`},
		"a path of Windows":  {entries: []entry{described, file(`C:\a`, "x")}, want: `OVA, member "C:\\a": has a name that is not accepted: an OVA has no folders, and names of at most 255 bytes without control characters; pack it again without the folder`},
		"a hidden file":      {entries: []entry{described, file("..", "x")}, want: `OVA, member "..": has a name that is not accepted: an OVA has no folders, and names of at most 255 bytes without control characters; pack it again without the folder`},
		"a line break":       {entries: []entry{described, file("a\nb", "x")}, want: `OVA, member "a\nb": has a name that is not accepted: an OVA has no folders, and names of at most 255 bytes without control characters; pack it again without the folder`},
		"a long name":        {entries: []entry{described, file(strings.Repeat("a", 256), "x")}, want: `OVA, member "` + strings.Repeat("a", 64) + `"…: has a name that is not accepted: an OVA has no folders, and names of at most 255 bytes without control characters; pack it again without the folder`},
		"a symbolic link":    {entries: []entry{described, {name: "a", change: kind(tar.TypeSymlink, "/etc/passwd")}}, want: `OVA, member "a": is a symbolic link; an OVA contains regular files only`},
		"a hard link":        {entries: []entry{described, {name: "a", change: kind(tar.TypeLink, "vm.ovf")}}, want: `OVA, member "a": is a hard link; an OVA contains regular files only`},
		"a device":           {entries: []entry{described, {name: "a", change: kind(tar.TypeBlock, "")}}, want: `OVA, member "a": is a block device; an OVA contains regular files only`},
		"a terminal":         {entries: []entry{described, {name: "a", change: kind(tar.TypeChar, "")}}, want: `OVA, member "a": is a character device; an OVA contains regular files only`},
		"a pipe":             {entries: []entry{described, {name: "a", change: kind(tar.TypeFifo, "")}}, want: `OVA, member "a": is a pipe; an OVA contains regular files only`},
		"a directory":        {entries: []entry{{name: "vm/", change: kind(tar.TypeDir, "")}, described, a}, want: `OVA, member "vm/": is a directory; an OVA contains regular files only`},
		"a global header": {entries: []entry{{change: func(h *tar.Header) {
			*h = tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax", PAXRecords: map[string]string{"path": "x"}}
		}}, described}, want: `OVA, member "x": is a global header; an OVA contains regular files only`},
		"a name twice":                       {entries: []entry{described, a, a}, want: `OVA, member "a": has the same name as the member "a"`},
		"a name twice but for case":          {entries: []entry{described, a, file("A", "x")}, want: `OVA, member "A": has the same name as the member "a"`},
		"two descriptors":                    {entries: []entry{described, {name: "b.ovf", content: described.content}}, want: `OVA, member "b.ovf": is the second member of type .ovf; an OVA contains one`},
		"no descriptor":                      {entries: []entry{a}, want: "OVA: contains no OVF descriptor, a member that ends in .ovf; it may be truncated"},
		"nothing":                            {want: "OVA: contains no OVF descriptor, a member that ends in .ovf; it may be truncated"},
		"a large descriptor":                 {entries: []entry{file("vm.ovf", strings.Repeat(" ", 4<<20+1))}, want: `OVA, member "vm.ovf": is larger than 4 MiB`},
		"a malformed descriptor":             {entries: []entry{file("vm.ovf", "<!DOCTYPE e>")}, want: "OVF descriptor, line 1: contains a document type or another declaration (<!…>), which are not accepted, nor are their entities; remove it"},
		"a missing file":                     {entries: []entry{described}, want: `OVA: the descriptor refers to the file "a", which is missing; the OVA may be truncated`},
		"a file elsewhere":                   {entries: []entry{descriptor(`ovf:href="https://example.com/a"`)}, want: `OVA, member "vm.ovf": refers to the file "https://example.com/a"; an OVA contains all of its files, without folders`},
		"a file of the host":                 {entries: []entry{descriptor(`ovf:href="../../etc/shadow"`)}, want: `OVA, member "vm.ovf": refers to the file "../../etc/shadow"; an OVA contains all of its files, without folders`},
		"a smaller size":                     {entries: []entry{descriptor(`ovf:href="a" ovf:size="3"`), a}, want: `OVA, member "a": has 4 bytes, and 3 according to the descriptor`},
		"a larger size":                      {entries: []entry{descriptor(`ovf:href="a" ovf:size="5"`), a}, want: `OVA, member "a": has 4 bytes, and 5 according to the descriptor`},
		"a lying size after the file":        {entries: []entry{a, descriptor(`ovf:href="a" ovf:size="5"`)}, want: `OVA, member "a": has 4 bytes, and 5 according to the descriptor`},
		"a missing chunk":                    {entries: []entry{descriptor(`ovf:href="a" ovf:size="7" ovf:chunkSize="4"`), file("a.000000000", "disk")}, want: `OVA: the descriptor refers to the file "a.000000001", which is missing; the OVA may be truncated`, wantStream: `OVA, member "a.000000001": is missing after the chunk before it; the OVA may be truncated`},
		"a short chunk":                      {entries: []entry{descriptor(`ovf:href="a" ovf:size="7" ovf:chunkSize="4"`), file("a.000000000", "disk"), file("a.000000001", "x")}, want: `OVA, member "a.000000001": has 1 bytes, and 3 according to the descriptor`},
		"chunks and a file of a name":        {entries: []entry{descriptor(`ovf:href="a" ovf:size="7" ovf:chunkSize="4"`, `ovf:href="a.000000001"`)}, want: `OVA, member "vm.ovf": refers to the file "a.000000001" twice`},
		"very many chunks":                   {entries: []entry{descriptor(`ovf:href="a" ovf:size="9000" ovf:chunkSize="1"`, `ovf:href="b" ovf:size="9000" ovf:chunkSize="1"`)}, want: `OVA, member "vm.ovf": refers to more than 12000 files and chunks`},
		"a changed file":                     {entries: []entry{described, manifest(described, a), file("a", "dusk")}, want: `OVA, member "a": has the SHA256 digest 63c0d87f13a4e1b8bb8f3d7a6a5ad3d1, and`},
		"a changed file before the manifest": {entries: []entry{described, file("a", "dusk"), manifest(described, a)}, want: `OVA, member "a": has the SHA256 digest 63c0d87f13a4e1b8bb8f3d7a6a5ad3d1, and`},
		"a changed descriptor":               {entries: []entry{described, manifest(file("vm.ovf", "x"), a), a}, want: `OVA, member "vm.ovf": has the SHA256 digest`},
		"no digest of a file":                {entries: []entry{described, manifest(described), a}, want: `OVA, member "vm.mf": has no digest of the member "a"`},
		"a digest of no file":                {entries: []entry{described, manifest(described, a, file("b", "")), a}, want: `OVA, member "vm.mf": has a digest of "b", which the OVA does not contain; it may be truncated`},
		"an empty manifest":                  {entries: []entry{described, file("vm.mf", "\n\n"), a}, want: `OVA, member "vm.mf": contains no digest`},
		"another line":                       {entries: []entry{described, file("vm.mf", "\nhello"), a}, want: `OVA, member "vm.mf": line 2 is "hello"; want ALGORITHM(FILE)= HEX`},
		"another algorithm":                  {entries: []entry{described, file("vm.mf", "MD5(a)= 00"), a}, want: `OVA, member "vm.mf": line 1 has the algorithm "MD5"; want SHA1, SHA256, SHA384 or SHA512`},
		"half a digit":                       {entries: []entry{described, file("vm.mf", "SHA1(a)= 000"), a}, want: `OVA, member "vm.mf": line 1 has an odd number of digits`},
		"a short digest":                     {entries: []entry{described, file("vm.mf", "SHA256(a)= 00"), a}, want: `OVA, member "vm.mf": line 1 has 2 digits; a digest of SHA256 has 64`},
		"a digest twice":                     {entries: []entry{described, file("vm.mf", manifest(a, a).content), a}, want: `OVA, member "vm.mf": line 2 is the second digest of "a"`},
		"a signature of nothing":             {entries: []entry{described, a, file("vm.cert", certificateOf(t))}, want: `OVA, member "vm.cert": signs a manifest, and the OVA contains none`},
		"a certificate alone":                {entries: []entry{described, a, file("vm.cert", "-----BEGIN CERTIFICATE-----")}, want: `OVA, member "vm.cert": contains no signature, a line ALGORITHM(MANIFEST)= HEX before the certificate`},
		"a signature alone":                  {entries: []entry{described, a, file("vm.cert", "SHA256(vm.mf)= 00\n")}, want: `OVA, member "vm.cert": contains no certificate`},
		"two signatures":                     {entries: []entry{described, a, file("vm.cert", "SHA256(vm.mf)= 00\nSHA256(vm.mf)= 00\n")}, want: `OVA, member "vm.cert": contains a second signature`},
		"a private key":                      {entries: []entry{described, a, file("vm.cert", "SHA256(vm.mf)= 00\n-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n")}, want: `OVA, member "vm.cert": contains a PEM block of type "RSA PRIVATE KEY"; want CERTIFICATE`},
		"a malformed certificate":            {entries: []entry{described, a, file("vm.cert", "SHA256(vm.mf)= 00\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}, want: `OVA, member "vm.cert": contains a malformed certificate: x509: malformed certificate`},
	} {
		t.Run(name, func(t *testing.T) {
			raw := archive(t, tc.entries...)
			_, err := openAndVerify(raw)
			checkError(t, "random access", tc.want, err)
			if tc.wantStream == "" {
				tc.wantStream = tc.want
			}
			_, _, err = readStream(bytes.NewReader(raw))
			checkError(t, "stream", tc.wantStream, err)
		})
	}
}

// checkError compares an error; one that ends in "digest X, and" or "digest" is compared up to the digests.
func checkError(t *testing.T, how, want string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: accepted", how)
		return
	}
	got := err.Error()
	if before, _, found := strings.Cut(want, " digest"); found && strings.Contains(want, "has the SHA256") {
		if !strings.HasPrefix(got, before+" digest ") || !strings.HasSuffix(got, " according to the manifest; it was changed or damaged") {
			t.Errorf("%s: got %s", how, got)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: error (-want +got):\n%s", how, diff)
	}
}

func TestTooManyMembersAreRejected(t *testing.T) {
	entries := []entry{descriptor()}
	for i := range ova.MaxMembers {
		entries = append(entries, file(fmt.Sprintf("m%d.mfx", i), ""))
	}
	_, err := openAndVerify(archive(t, entries...))
	checkError(t, "random access", `OVA, member "m11999.mfx": is one member too many; an OVA contains at most 12000`, err)
}

// TestTruncatedArchivesAreRejected cuts an OVA with and without a manifest at every block, and at bytes around them.
func TestTruncatedArchivesAreRejected(t *testing.T) {
	described := descriptor(`ovf:href="a"`)
	a := file("a", strings.Repeat("disk", 300))
	for name, entries := range map[string][]entry{"without a manifest": {described, a}, "with a manifest": {described, a, manifest(described, a)}} {
		raw := archive(t, entries...)
		whole := len(raw) - 2*512
		for at := 0; at <= whole; at += 256 {
			for _, cut := range []int{at, at + 1, at + 255} {
				if cut >= whole+512 {
					continue
				}
				if _, err := openAndVerify(raw[:cut]); err == nil {
					t.Errorf("%s, cut at %d of %d: accepted with random access", name, cut, len(raw))
				}
				if _, _, err := readStream(bytes.NewReader(raw[:cut])); err == nil || errors.Is(err, io.EOF) {
					t.Errorf("%s, cut at %d of %d: accepted as a stream: %v", name, cut, len(raw), err)
				}
			}
		}
	}
	raw := archive(t, described, a)
	_, err := openAndVerify(raw[:len(raw)-1024])
	checkError(t, "without an end", "OVA: is truncated: its end mark is missing; transfer it again", err)
	_, err = openAndVerify(raw[:len(raw)-1500])
	checkError(t, "within a file", `OVA, member "a": is truncated; transfer it again`, err)
	_, _, err = readStream(bytes.NewReader(raw[:len(raw)-1500]))
	checkError(t, "within a file, stream", `OVA, member "a": is truncated; transfer it again`, err)
}

func TestBombsAreRejected(t *testing.T) {
	// The disk has 1 MiB, so that the content may have 65 MiB and a bit. The bombs have 68 MiB, in streams one after the other.
	zeros := strings.Repeat("\x00", 4<<20)
	for name, tc := range map[string]struct{ compression, content, want string }{
		"gzip":             {"gzip", strings.Repeat(gzipped(t, zeros), 17), `OVA, member "a": expands to more than 68190208 bytes, the limit for a file of this disk capacity`},
		"xz":               {"xz", strings.Repeat(xzipped(t, xz.WriterConfig{DictCap: 1 << 20}, zeros), 17), `OVA, member "a": expands to more than 68190208 bytes, the limit for a file of this disk capacity`},
		"an xz dictionary": {"xz", largeDictionary(t, 0), `OVA, member "a": cannot be read: the xz dictionary is larger than 64 MiB; compress the file with xz -9 or less`},
		"the second one":   {"xz", largeDictionary(t, 1), `OVA, member "a": cannot be read: the xz dictionary is larger than 64 MiB; compress the file with xz -9 or less`},
		"no gzip":          {"gzip", "hello, this is text", `OVA, member "a": cannot be read: gzip: invalid header`},
		"no xz":            {"xz", "hello, this is text", `OVA, member "a": cannot be read: xz: invalid header magic bytes`},
		"truncated gzip":   {"gzip", gzipped(t, "hello")[:15], `OVA, member "a": is truncated; transfer it again`},
		"truncated xz":     {"xz", xzipped(t, xz.WriterConfig{}, "hello")[:40], `OVA, member "a": is truncated; transfer it again`},
		"a wrong gzip sum": {"gzip", gzipped(t, "hello")[:len(gzipped(t, "hello"))-8] + "12345678", `OVA, member "a": cannot be read: gzip: invalid checksum`},
	} {
		t.Run(name, func(t *testing.T) {
			raw := archive(t, descriptor(`ovf:href="a" ovf:compression="`+tc.compression+`"`), file("a", tc.content))
			p, err := ova.Open(bytes.NewReader(raw), int64(len(raw)))
			if err != nil {
				t.Fatal(err)
			}
			checkError(t, "random access", tc.want, discard(p.Content(p.Envelope().File("f0"))))
			e, err := ova.NewReader(bytes.NewReader(raw)).Next()
			if err != nil {
				t.Fatal(err)
			}
			checkError(t, "stream", tc.want, discard(e.Content()))
		})
	}
}

// discard reads a content to its end or an error.
func discard(r io.Reader, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return err
}

// largeDictionary returns an xz file of two blocks and two streams, of which one block header declares a dictionary of almost 4 GiB.
func largeDictionary(t *testing.T, number int) string {
	t.Helper()
	one := xzipped(t, xz.WriterConfig{BlockSize: 1 << 16}, strings.Repeat("block ", 1<<14))
	raw := []byte(one)
	// The header of a block of this writer: its size, its flags, and the filter LZMA2 with a dictionary of 8 MiB.
	header := raw[12 : 12+(int(raw[12])+1)*4]
	at := 12
	for range number {
		next := bytes.Index(raw[at+len(header):], header[:2])
		for next >= 0 && !bytes.Equal(raw[at+len(header)+next:][:5], header[:5]) {
			skip := bytes.Index(raw[at+len(header)+next+1:], header[:2])
			if skip < 0 {
				t.Fatal("there is no second block")
			}
			next += 1 + skip
		}
		at += len(header) + next
	}
	block := raw[at : at+len(header)]
	filter := bytes.Index(block, []byte{0x21, 1})
	block[filter+2] = 40
	binary.LittleEndian.PutUint32(block[len(block)-4:], crc32.ChecksumIEEE(block[:len(block)-4]))
	return string(raw)
}

func TestManifestsOfOtherExportersAreRead(t *testing.T) {
	described := descriptor(`ovf:href="a"`)
	a := file("a", "disk")
	for name, text := range map[string]string{
		"SHA-1, spaces, CRLF and upper case": fmt.Sprintf("SHA1 (vm.ovf) = %X\r\n\r\nsha1(a)=%X\r\n", sha1.Sum([]byte(described.content)), sha1.Sum([]byte(a.content))),
		"no line break at the end":           strings.TrimSpace(manifest(described, a).content),
		"OpenSSL 3":                          strings.ReplaceAll(manifest(described, a).content, "SHA256", "SHA2-256"),
		"SHA-256 with a hyphen":              strings.ReplaceAll(manifest(described, a).content, "SHA256", "SHA-256"),
	} {
		for order, entries := range map[string][]entry{
			"first": {described, file("vm.mf", text), a}, "last": {described, a, file("vm.mf", text)}, "before the descriptor": {file("vm.mf", text), a, described},
		} {
			raw := archive(t, entries...)
			p, err := openAndVerify(raw)
			if err != nil {
				t.Errorf("%s, %s: %v", name, order, err)
				continue
			}
			if p.Manifest().Weak() != strings.Contains(name, "SHA-1,") {
				t.Errorf("%s: weak is %v", name, p.Manifest().Weak())
			}
			files, _, err := readStream(bytes.NewReader(raw))
			if err != nil || files["a"] != "disk" {
				t.Errorf("%s, %s, as a stream: %v", name, order, err)
			}
		}
	}
}
