package web

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/outbound"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

const key = "golden/fedora"

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// tlsServer serves by HTTPS, and returns the URL and the authority.
func tlsServer(t *testing.T, handler http.HandlerFunc) (string, []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func spec(source v1alpha1.GoldenImageHTTP) *v1alpha1.GoldenImageSpec {
	made := &v1alpha1.GoldenImageSpec{Storage: v1alpha1.GoldenImageStorage{Size: resource.MustParse("1Ki")}}
	made.Source.HTTP = &source
	return made
}

// newest returns the digest, or the error.
func newest(t *testing.T, source v1alpha1.GoldenImageHTTP) string {
	t.Helper()
	return result((&Client{Allowed: loopback}).Newest(t.Context(), key, spec(source), outbound.Credentials{}))
}

func result(digest string, err error) string {
	if err != nil {
		return err.Error()
	}
	return digest
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnInlineChecksumNeedsNoRequest(t *testing.T) {
	got, err := (&Client{}).Newest(t.Context(), key, spec(v1alpha1.GoldenImageHTTP{URL: "http://127.0.0.1:1/a", Checksum: "sha256:01"}), outbound.Credentials{})
	equal(t, result(got, err), "sha256:01")
}

func TestFilesOfChecksums(t *testing.T) {
	one, two, long := strings.Repeat("1", 64), strings.Repeat("a", 64), strings.Repeat("b", 128)
	const none = "has no line for disk.qcow2: it must have its checksum by SHA-256 or SHA-512"
	for text, tc := range map[string]struct{ content, want string }{
		"GNU":                       {two + "  other.qcow2\n" + one + "  disk.qcow2\n", "sha256:" + one},
		"GNU, binary":               {one + " *disk.qcow2\n", "sha256:" + one},
		"GNU, in this folder":       {one + "  ./disk.qcow2\n", "sha256:" + one},
		"of Windows":                {one + "  disk.qcow2\r\n", "sha256:" + one},
		"SHA-512":                   {long + "  disk.qcow2\n", "sha512:" + long},
		"BSD, signed, as of Fedora": {"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# disk.qcow2: 9 bytes\nSHA256 (disk.qcow2) = " + two + "\n-----BEGIN PGP SIGNATURE-----\n\niQIz\n", "sha256:" + two},
		"BSD, SHA-512":              {"SHA512 (disk.qcow2) = " + long, "sha512:" + long},
		"only a hash":               {one + "\n", "sha256:" + one},
		"in capital letters":        {strings.ToUpper(two) + "  disk.qcow2", "sha256:" + two},
		"MD5 and SHA-256":           {strings.Repeat("c", 32) + "  disk.qcow2\n" + one + "  disk.qcow2\n", "sha256:" + one},
		"no line of it":             {one + "  other.qcow2\n" + two + "  disk.qcow2.xz\n", none},
		"a name that begins so":     {one + "  other-disk.qcow2\n", none},
		"nothing":                   {"", none},
		"a page":                    {"<html><a href=\"disk.qcow2\">disk.qcow2</a></html>", none},
		"two hashes without names":  {one + "\n" + two + "\n", none},
		"only weak, GNU":            {strings.Repeat("c", 40) + "  disk.qcow2\n", "has only a checksum by MD5 or SHA-1 of disk.qcow2, which are too weak: use a file with SHA-256 or SHA-512"},
		"only weak, BSD":            {"MD5 (disk.qcow2) = " + strings.Repeat("c", 32), "has only a checksum by MD5 or SHA-1 of disk.qcow2, which are too weak: use a file with SHA-256 or SHA-512"},
		"cut off":                   {one[:50] + "  disk.qcow2\n", "has a line for disk.qcow2 without a checksum by SHA-256 or SHA-512"},
		"no digits":                 {strings.Repeat("z", 64) + "  disk.qcow2\n", "has a line for disk.qcow2 without a checksum by SHA-256 or SHA-512"},
		"two that differ":           {one + "  disk.qcow2\n" + two + "  disk.qcow2\n", "has several checksums of disk.qcow2"},
	} {
		t.Run(text, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.content) })
			got := newest(t, v1alpha1.GoldenImageHTTP{URL: "https://images.example/f/disk.qcow2", ChecksumFile: server + "/SHA256SUMS?token=secret"})
			want := tc.want
			if !strings.HasPrefix(want, "sha") {
				want = server + "/SHA256SUMS " + want
			}
			equal(t, got, want)
		})
	}
}

func TestAFileOfChecksumsIsReadOnce(t *testing.T) {
	hash, sent := strings.Repeat("1", 64), 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"`+hash[:4]+`"`)
		if r.Header.Get("If-None-Match") == `"`+hash[:4]+`"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		_, _ = fmt.Fprintf(w, "%s  a\n%s  b\n", hash, strings.Repeat("2", 64))
	})
	client := &Client{Allowed: loopback}
	check := func(name, want string, wantSent int) {
		t.Helper()
		got, err := client.Newest(t.Context(), key, spec(v1alpha1.GoldenImageHTTP{URL: server + "/" + name, ChecksumFile: server + "/SUMS"}), outbound.Credentials{})
		if equal(t, result(got, err), "sha256:"+want); sent != wantSent {
			t.Errorf("the file was sent %d times, want %d", sent, wantSent)
		}
	}
	check("a", hash, 1)
	check("a", hash, 1)
	check("b", strings.Repeat("2", 64), 2)
	hash = strings.Repeat("3", 64)
	check("a", hash, 3)
	client.Forget(key)
	check("a", hash, 4)
}

func TestAFileWithoutChecksum(t *testing.T) {
	etag, modified, size, head := `"one"`, "", "900", true
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !head && r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("ETag", etag)
		w.Header().Set("Last-Modified", modified)
		if r.Header.Get("Range") != "" {
			w.Header().Set("Content-Range", "bytes 0-0/"+size)
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("a"))
			return
		}
		w.Header().Set("Content-Length", size)
	})
	source := v1alpha1.GoldenImageHTTP{URL: server + "/disk.raw"}
	first := newest(t, source)
	if !strings.HasPrefix(first, "version:") || len(first) != len("version:")+64 {
		t.Fatal(first)
	}
	equal(t, newest(t, source), first)
	head = false
	equal(t, newest(t, source), first)
	seen := map[string]bool{first: true}
	for _, change := range []func(){func() { etag = `"two"` }, func() { modified = "Mon, 04 May 2026 12:00:00 GMT" }, func() { size = "901" }, func() { source.URL += "?a" }} {
		change()
		got := newest(t, source)
		if !strings.HasPrefix(got, "version:") || seen[got] {
			t.Error(got)
		}
		seen[got] = true
	}
	size = "2000"
	equal(t, newest(t, source), server+"/disk.raw has 2000 bytes, and spec.storage.size is 1Ki: raise it")
	source.URL = server + "/disk.qcow2"
	if got := newest(t, source); !strings.HasPrefix(got, "version:") {
		t.Error(got)
	}
	etag, modified = "", ""
	equal(t, newest(t, source), server+"/disk.qcow2: the server sends neither ETag nor Last-Modified, so that a newer version cannot be recognized: give checksum or checksumFile")
}

func TestAnswersThatAreWrong(t *testing.T) {
	for text, tc := range map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"no such file": {http.NotFound, "/SUMS: 404 Not Found: correct the URL"},
		"it fails":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "/SUMS: 502 Bad Gateway: the server fails; it is tried again"},
		"no access": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			"/SUMS: 401 Unauthorized: correct the URL, or the credentials in the Secret that secretRef names"},
		"not modified, which was not requested": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, "/SUMS: 304 Not Modified: correct the URL"},
		"truncated": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, strings.Repeat("1", 64))
		}, "reading SERVER/SUMS: unexpected EOF"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for part := bytes.Repeat([]byte("a\n"), 1000); r.Context().Err() == nil; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}, "/SUMS is larger than 1 MiB: it is no file of checksums"},
		"redirects without end": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"?secret", http.StatusFound)
		}, "GET SERVER/SUMS: it redirects more than 5 times: use the URL at which they end"},
	} {
		t.Run(text, func(t *testing.T) {
			server := serve(t, tc.handle)
			got := newest(t, v1alpha1.GoldenImageHTTP{URL: server + "/a", ChecksumFile: server + "/SUMS?secret=1"})
			want := strings.ReplaceAll(tc.want, "SERVER", server)
			if strings.HasPrefix(want, "/") {
				want = server + want
			}
			equal(t, got, want)
		})
	}
	t.Run("a server that does not answer ends with the time limit", func(t *testing.T) {
		server := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := (&Client{Allowed: loopback}).Newest(ctx, key, spec(v1alpha1.GoldenImageHTTP{URL: server + "/a?secret"}), outbound.Credentials{})
		if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	})
}

func TestAddressesThatAreNotPublicAreDenied(t *testing.T) {
	requested := false
	private := serve(t, func(http.ResponseWriter, *http.Request) { requested = true })
	const denied = ": the address is not public: allow its network in the chart's value goldenImages.allowedNetworks"
	got := result((&Client{}).Newest(t.Context(), key, spec(v1alpha1.GoldenImageHTTP{URL: private + "/a"}), outbound.Credentials{}))
	if !strings.HasSuffix(got, "127.0.0.1"+denied) || requested {
		t.Error(got, requested)
	}
	t.Run("when a server redirects there", func(t *testing.T) {
		listener, err := net.Listen("tcp", "[::1]:0")
		if err != nil {
			t.Skip("there is no IPv6: ", err)
		}
		elsewhere := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requested = true }), ReadHeaderTimeout: time.Minute}}
		elsewhere.Start()
		defer elsewhere.Close()
		from := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+listener.Addr().String()+"/a", http.StatusTemporaryRedirect)
		})
		got := result((&Client{Allowed: loopback[:1]}).Newest(t.Context(), key, spec(v1alpha1.GoldenImageHTTP{URL: from + "/a"}), outbound.Credentials{}))
		if !strings.HasSuffix(got, "::1"+denied) || requested {
			t.Error(got, requested)
		}
	})
}

func TestCredentialsAreSentToTheHostOnly(t *testing.T) {
	leaked := ""
	other, otherAuthority := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		leaked += r.Header.Get("Authorization")
		w.Header().Set("ETag", `"there"`)
		_, _ = io.WriteString(w, strings.Repeat("1", 64))
	})
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) {
		leaked += r.Header.Get("Authorization")
		w.Header().Set("ETag", `"plain"`)
	})
	host, authority := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if username, password, _ := r.BasicAuth(); username != "reader" || password != "right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other+"/a", http.StatusFound)
		case "/down":
			http.Redirect(w, r, plain+"/a", http.StatusFound)
		case "/moved":
			http.Redirect(w, r, "/a", http.StatusFound)
		}
		w.Header().Set("ETag", `"here"`)
	})
	right := outbound.Credentials{Username: "reader", Password: "right", Authorities: [][]byte{authority, otherAuthority}}
	wrong := right
	wrong.Password = "wrong"
	none := outbound.Credentials{Authorities: right.Authorities}
	const unauthorized = ": 401 Unauthorized: correct the URL, or the credentials in the Secret that secretRef names"
	for text, tc := range map[string]struct {
		url  string
		sums string
		with outbound.Credentials
		want string
	}{
		"the host":                   {host + "/a", "", right, "version:"},
		"a redirect on the host":     {host + "/moved", "", right, "version:"},
		"a redirect to another host": {host + "/away", "", right, "version:"},
		"checksums of another host":  {host + "/a", other + "/SUMS", right, "sha256:" + strings.Repeat("1", 64)},
		"a redirect without TLS":     {host + "/down", "", right, "HEAD " + host + "/down: it redirects from HTTPS to " + strings.TrimPrefix(plain, "http://") + " without: use a URL that does not"},
		"a host without TLS":         {plain + "/a", "", right, "version:"},
		"a wrong password":           {host + "/a", "", wrong, host + "/a" + unauthorized},
		"no password":                {host + "/a", "", none, host + "/a" + unauthorized},
		"an authority that is none":  {host + "/a", "", outbound.Credentials{Authorities: [][]byte{[]byte("no PEM")}}, "certConfigMap: it has a value without certificates in PEM"},
	} {
		t.Run(text, func(t *testing.T) {
			got := result((&Client{Allowed: loopback}).Newest(t.Context(), key, spec(v1alpha1.GoldenImageHTTP{URL: tc.url, ChecksumFile: tc.sums}), tc.with))
			if !strings.HasPrefix(got, tc.want) || strings.Contains(got, "right") || strings.Contains(got, "wrong") {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if leaked != "" {
				t.Errorf("credentials were sent elsewhere: %s", leaked)
			}
		})
	}
}
