package ova_test

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ulikunitz/xz"

	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/ova"
)

// envelope returns an envelope with a file for each name and content.
func envelope(files ...ovf.File) *ovf.Envelope {
	return &ovf.Envelope{Files: files, Systems: []ovf.System{{ID: "vm", Hardware: ovf.Hardware{Types: []string{"kvm"}}}}}
}

func write(t testing.TB, e *ovf.Envelope, options ova.WriterOptions, contents ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := ova.NewWriter(&b, e, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range contents {
		if err := w.Add(strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	plain, chunked := "a disk", strings.Repeat("0123456789", 1000)
	compressed, xzCompressed := gzipped(t, chunked), xzipped(t, xz.WriterConfig{BlockSize: 4096}, chunked)
	e := envelope(
		ovf.File{ID: "1", Href: "plain.raw", Size: int64(len(plain))}, ovf.File{ID: "2", Href: "chunked.raw", Size: int64(len(chunked)), ChunkSize: 4096},
		ovf.File{ID: "3", Href: "gzip.raw.gz", Size: int64(len(compressed)), Compression: "gzip", ChunkSize: 17}, ovf.File{ID: "4", Href: "xz.raw.xz", Size: int64(len(xzCompressed)), Compression: "xz"},
		ovf.File{ID: "5", Href: "empty.raw"},
	)
	for name, options := range map[string]ova.WriterOptions{"unsigned": {Name: "vm"}, "signed": {Name: "vm-2_x.y", Signer: signer(t)}} {
		t.Run(name, func(t *testing.T) {
			raw := write(t, e, options, plain, chunked, compressed, xzCompressed, "")
			if again := write(t, e, options, plain, chunked, compressed, xzCompressed, ""); !bytes.Equal(raw, again) {
				t.Error("the same content became other bytes")
			}
			if size, err := ova.Size(e, options); err != nil || size != int64(len(raw)) {
				t.Errorf("the announced size is %d, %v; the OVA has %d bytes", size, err, len(raw))
			}
			p, err := ova.Open(bytes.NewReader(raw), int64(len(raw)))
			if err != nil {
				t.Fatal(err)
			}
			read := int64(0)
			if err := p.Verify(func(n int64) error { read += n; return nil }); err != nil || read < int64(len(plain+chunked+compressed)) {
				t.Errorf("verification: %v after %d bytes", err, read)
			}
			if stop := errors.New("stop"); !errors.Is(p.Verify(func(int64) error { return stop }), stop) {
				t.Error("the verification was not stopped")
			}
			if members := p.Members(); members[0].Name != options.Name+".ovf" || p.DescriptorName() != members[0].Name {
				t.Errorf("the first member is %s", members[0].Name)
			}
			stream := ova.NewReader(bytes.NewReader(raw))
			for i, want := range []string{plain, chunked, chunked, chunked, ""} {
				f := &p.Envelope().Files[i]
				content, err := p.Content(f)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(content); err != nil || string(got) != want {
					t.Errorf("%s: %v, %d bytes", f.Href, err, len(got))
				}
				entry, err := stream.Next()
				if err != nil {
					t.Fatal(err)
				}
				if content, err = entry.Content(); err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(content); err != nil || string(got) != want || entry.File.Href != f.Href {
					t.Errorf("%s as a stream: %v, %d bytes of %s", f.Href, err, len(got), entry.File.Href)
				}
			}
			if _, err := stream.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("the stream ends with %v", err)
			}
			at := make([]byte, 10)
			if n, err := p.Raw(p.Envelope().File("2")).ReadAt(at, 4090); err != nil || string(at[:n]) != chunked[4090:4100] {
				t.Errorf("across chunks: %q, %v", at[:n], err)
			}
			if n, err := p.Raw(p.Envelope().File("2")).ReadAt(at, 9995); !errors.Is(err, io.EOF) || n != 5 {
				t.Errorf("across the end: %d, %v", n, err)
			}
		})
	}
}

func TestFilesMayBeSkippedAndStaleEntriesFail(t *testing.T) {
	e := envelope(ovf.File{ID: "1", Href: "a", Size: 9, ChunkSize: 9}, ovf.File{ID: "2", Href: "b", Size: 4})
	r := ova.NewReader(bytes.NewReader(write(t, e, ova.WriterOptions{Name: "vm"}, "123456789", "disk")))
	first, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	_, err = first.Read(make([]byte, 1))
	checkError(t, "read", `OVA, member "a.000000000": is read after the next member`, err)
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestChunksOutOfOrderNeedRandomAccess(t *testing.T) {
	raw := archive(t, descriptor(`ovf:href="a" ovf:size="7" ovf:chunkSize="4"`), file("a.000000001", "ett"), file("a.000000000", "disk"))
	p, err := openAndVerify(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(p.Raw(p.Envelope().File("f0"))); err != nil || string(got) != "diskett" {
		t.Errorf("%q, %v", got, err)
	}
	_, _, err = readStream(bytes.NewReader(raw))
	checkError(t, "stream", `OVA, member "a.000000001": is not in order: chunks must follow each other in a stream; read the OVA from a file, or convert it`, err)
}

func TestFilesBeforeTheDescriptorAreHandedOver(t *testing.T) {
	raw := archive(t, file("a", gzipped(t, "disk")), descriptor(`ovf:href="a" ovf:compression="gzip"`))
	e, err := ova.NewReader(bytes.NewReader(raw)).Next()
	if err != nil || e.File != nil || e.Member.Name != "a" {
		t.Fatalf("%+v, %v", e, err)
	}
	_, err = e.Content()
	checkError(t, "content", `OVA, member "a": comes before the descriptor, so that its compression is unknown; read the OVA from a file, or convert it`, err)
}

func TestWritersRejectWhatTheyCannotWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		envelope *ovf.Envelope
		name     string
		want     string
	}{
		"a path":            {envelope(), "../vm", `writing an OVA: OVA, member "../vm.ovf": has a name that is not accepted: an OVA has no folders, and names of at most 255 bytes without control characters; pack it again without the folder`},
		"no size":           {envelope(ovf.File{ID: "1", Href: "a", Size: -1}), "vm", `writing an OVA: the file "a" has no size in the envelope`},
		"a metadata name":   {envelope(ovf.File{ID: "1", Href: "VM.mf"}), "vm", `writing an OVA: OVA, member "VM.mf": has the same name as the member "vm.mf"`},
		"no valid envelope": {&ovf.Envelope{}, "vm", "encoding the OVF descriptor: the envelope is not valid: OVF descriptor, line 2, Envelope: contains no VirtualSystem"},
	} {
		_, err := ova.NewWriter(io.Discard, tc.envelope, ova.WriterOptions{Name: tc.name})
		checkError(t, name, tc.want, err)
		_, err = ova.Size(tc.envelope, ova.WriterOptions{Name: tc.name})
		checkError(t, name+", size", tc.want, err)
	}
	for name, tc := range map[string]struct {
		contents []string
		want     string
	}{
		"a short file": {[]string{"123"}, `writing the member "a" of an OVA: its content has 3 bytes, and 4 were announced`},
		"a long file":  {[]string{"12345"}, `writing the member "a" of an OVA: its content has more than the 4 bytes that were announced`},
		"no file":      {nil, `writing an OVA: the file "a" and 0 others were not added`},
		"another file": {[]string{"1234", ""}, "writing an OVA: the envelope has no further file"},
	} {
		w, err := ova.NewWriter(io.Discard, envelope(ovf.File{ID: "1", Href: "a", Size: 4}), ova.WriterOptions{Name: "vm"})
		if err != nil {
			t.Fatal(err)
		}
		for _, content := range tc.contents {
			_ = w.Add(strings.NewReader(content))
		}
		checkError(t, name, tc.want, w.Close())
	}
}

// zeros is a file of zeros after the bytes of its beginning, and with those of its end.
type zeros struct {
	head, tail []byte
	size       int64
}

func (z zeros) ReadAt(p []byte, at int64) (int, error) {
	if at >= z.size {
		return 0, io.EOF
	}
	clear(p)
	n := int(min(int64(len(p)), z.size-at))
	if at < int64(len(z.head)) {
		copy(p, z.head[at:])
	}
	if from := z.size - int64(len(z.tail)); at+int64(n) > from {
		copy(p[max(0, from-at):n], z.tail[max(0, at-from):])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestFilesBeyondEightGiBAreRead(t *testing.T) {
	const size = 9<<30 + 5
	for name, format := range map[string]tar.Format{"PAX": tar.FormatPAX, "base-256": tar.FormatGNU} {
		var head bytes.Buffer
		w := tar.NewWriter(&head)
		d := descriptor(`ovf:href="a" ovf:size="` + fmt.Sprint(size) + `"`)
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: d.name, Size: int64(len(d.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, d.content); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: size, Format: format}); err != nil {
			t.Fatal(err)
		}
		total := int64(head.Len()) + (size+511)&^511 + 1024
		p, err := ova.Open(zeros{head: head.Bytes(), size: total}, total)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := p.Raw(p.Envelope().File("f0")).Size(); got != size {
			t.Errorf("%s: the file has %d bytes", name, got)
		}
		if _, err := ova.Open(zeros{head: head.Bytes(), size: total - 2048}, total-2048); err == nil {
			t.Errorf("%s: a truncated file is accepted", name)
		}
	}
}

var keys = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// signer returns a signer whose certificate a CA of the same key signed, valid in 2030.
func signer(t testing.TB) *ova.Signer {
	t.Helper()
	key, err := keys()
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: date(2030), NotAfter: date(2031), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "signer"}, NotBefore: date(2030), NotAfter: date(2031)}
	var chain []*x509.Certificate
	for _, template := range []*x509.Certificate{leaf, ca} {
		raw, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(raw)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, certificate)
	}
	return &ova.Signer{Key: key, Chain: chain}
}

func date(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }

// certificateOf returns a certificate file of some signature.
func certificateOf(t testing.TB) string {
	t.Helper()
	raw := write(t, envelope(), ova.WriterOptions{Name: "vm", Signer: signer(t)})
	r := tar.NewReader(bytes.NewReader(raw))
	for {
		header, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == "vm.cert" {
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return string(content)
		}
	}
}

func TestSignaturesAreVerified(t *testing.T) {
	s := signer(t)
	roots := x509.NewCertPool()
	roots.AddCert(s.Chain[1])
	unsigned := archive(t, descriptor(`ovf:href="a"`), file("a", "disk"))
	p, err := openAndVerify(unsigned)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.VerifySignature(roots, date(2030))
	checkError(t, "unsigned", "OVA: is not signed: it contains no member that ends in .cert", err)

	var b bytes.Buffer
	if err := ova.Sign(&b, p, s); err != nil {
		t.Fatal(err)
	}
	signed, err := openAndVerify(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(p.Descriptor()), string(signed.Descriptor())); diff != "" {
		t.Errorf("the descriptor was changed:\n%s", diff)
	}
	certificate, err := signed.VerifySignature(roots, date(2030))
	if err != nil || certificate.Subject.CommonName != "signer" {
		t.Errorf("%v, %v", certificate, err)
	}
	_, r, err := readStream(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.VerifySignature(roots, date(2030)); err != nil {
		t.Errorf("as a stream: %v", err)
	}
	_, err = signed.VerifySignature(roots, date(2032))
	checkError(t, "expired", `OVA, member "vm.cert": the certificate of the signer is not trusted: x509: certificate has expired or is not yet valid: current time 2032-01-01T00:00:00Z is after 2031-01-01T00:00:00Z`, err)
	if _, err = signed.VerifySignature(x509.NewCertPool(), date(2030)); err == nil {
		t.Error("a certificate of an unknown authority is trusted")
	}

	text := certificateOf(t)
	described := descriptor(`ovf:href="a"`)
	listed := manifest(described, file("a", "disk"))
	for name, tc := range map[string]struct{ text, want string }{
		"another manifest":      {text, `OVA, member "vm.cert": the signature does not match the manifest, which was changed or signed by another key`},
		"another name":          {strings.Replace(text, "(vm.mf)", "(x.mf)", 1), `OVA, member "vm.cert": signs "x.mf", and the manifest is "vm.mf"`},
		"a weak algorithm":      {strings.Replace(text, "SHA256(", "SHA1(", 1), `OVA, member "vm.cert": the signature uses SHA1, which can be forged; sign the OVA again with SHA256`},
		"OpenSSL's name":        {strings.Replace(text, "SHA256(", "RSA-SHA2-256(", 1), `OVA, member "vm.cert": the signature does not match the manifest, which was changed or signed by another key`},
		"an algorithm of a lie": {strings.Replace(text, "SHA256(", "SHA512(", 1), `OVA, member "vm.cert": the signature does not match the manifest, which was changed or signed by another key`},
	} {
		p, err := openAndVerify(archive(t, described, listed, file("vm.cert", tc.text), file("a", "disk")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = p.VerifySignature(roots, date(2030))
		checkError(t, name, tc.want, err)
	}
}

func TestKeysThatCannotSign(t *testing.T) {
	s := signer(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		signer ova.Signer
		want   string
	}{
		"another key":    {ova.Signer{Key: other, Chain: s.Chain}, "signing an OVA: want 1 to 16 certificates, the first of which is that of the key"},
		"no certificate": {ova.Signer{Key: s.Key}, "signing an OVA: want 1 to 16 certificates, the first of which is that of the key"},
	} {
		_, err := ova.NewWriter(io.Discard, envelope(), ova.WriterOptions{Name: "vm", Signer: &tc.signer})
		checkError(t, name, tc.want, err)
	}
}

func TestAChangedPackageIsNotSigned(t *testing.T) {
	described := descriptor(`ovf:href="a"`)
	raw := archive(t, described, manifest(described, file("a", "dusk")), file("a", "disk"))
	p, err := ova.Open(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ova.Sign(&b, p, signer(t)); err == nil || b.Len() > 0 {
		t.Errorf("signed: %v, %d bytes", err, b.Len())
	}
}
