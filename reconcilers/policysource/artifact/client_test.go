package artifact

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/vmstencil/stencil/internal/cosign"
)

// publisher has a registry and a key.
type publisher struct {
	address string
	signer  signature.Signer
	public  string
	// tamper changes what is served.
	tamper func(path string, body []byte) []byte
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{}
	serve := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.tamper == nil || r.Method != http.MethodGet {
			serve.ServeHTTP(w, r)
			return
		}
		recorded := httptest.NewRecorder()
		serve.ServeHTTP(recorded, r)
		body := p.tamper(r.URL.Path, recorded.Body.Bytes())
		for key, values := range recorded.Header() {
			if key != "Content-Length" {
				w.Header()[key] = values
			}
		}
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	p.address = strings.TrimPrefix(server.URL, "http://")
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(t, err)
	p.signer, err = signature.LoadSigner(private, crypto.SHA256)
	fatal(t, err)
	pem, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())
	fatal(t, err)
	p.public = string(pem)
	return p
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// push pushes an artifact with one layer and returns its digest.
func (p *publisher) push(t *testing.T, tag, content string) string {
	t.Helper()
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), Type)
	image, err := mutate.Append(image, mutate.Addendum{Layer: static.NewLayer([]byte(content), LayerType)})
	fatal(t, err)
	p.write(t, "policies:"+tag, image)
	digest, err := image.Digest()
	fatal(t, err)
	return digest.String()
}

func (p *publisher) write(t *testing.T, reference string, image v1.Image) {
	t.Helper()
	to, err := name.ParseReference(p.address + "/" + reference)
	fatal(t, err)
	fatal(t, remote.Write(to, image))
}

func (p *publisher) sign(t *testing.T, digest string) {
	t.Helper()
	content := []byte(`{"critical":{"identity":{"docker-reference":"registry.example.com/policies"},"image":{"docker-manifest-digest":"` + digest + `"},"type":"cosign container image signature"},"optional":null}`)
	made, err := p.signer.SignMessage(bytes.NewReader(content))
	fatal(t, err)
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:       static.NewLayer(content, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{cosign.SignatureAnnotation: base64.StdEncoding.EncodeToString(made)},
	})
	fatal(t, err)
	p.write(t, "policies:"+strings.Replace(digest, ":", "-", 1)+".sig", image)
}

func (p *publisher) get(t *testing.T, request Request) (*Artifact, error) {
	t.Helper()
	if request.URL == "" {
		request.URL = "oci://" + p.address + "/policies:v1"
	}
	if request.PublicKeys == nil {
		request.PublicKeys = []string{p.public}
	}
	client := &Client{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	return client.Get(t.Context(), request)
}

func TestGet(t *testing.T) {
	p := newPublisher(t)
	first := p.push(t, "v1", good)
	_, err := p.get(t, Request{})
	if !errors.Is(err, ErrNotSigned) || err.Error() != p.address+"/policies:v1, "+first+": no signature of spec.verify.publicKeys" {
		t.Fatal(err)
	}
	p.sign(t, first)
	got, err := p.get(t, Request{})
	fatal(t, err)
	if got.Digest != first || len(got.Policies) != 1 || got.Policies[0].GetName() != "a" {
		t.Fatalf("got %+v", got)
	}
	if again, err := p.get(t, Request{Held: got}); err != nil || again != got {
		t.Errorf("got %+v, %v, want the one that is held", again, err)
	}
	if _, err := p.get(t, Request{PublicKeys: []string{newPublisher(t).public}, Held: got}); !errors.Is(err, ErrNotSigned) {
		t.Errorf("with another key: %v", err)
	}

	second := p.push(t, "v1", other+"---\nkind: Pod\n")
	if pinned, err := p.get(t, Request{Digest: first}); err != nil || pinned.Digest != first {
		t.Errorf("got %+v, %v, want %s", pinned, err, first)
	}
	p.sign(t, second)
	_, err = p.get(t, Request{Held: got})
	var broken *InvalidError
	if want := p.address + "/policies:v1, " + second + `: layer 0, document 1: kind: it is a "Pod" of ""; only VirtualMachinePolicy of stencil.kubevirt.io/v1alpha1 is supported`; !errors.As(err, &broken) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if _, err := (&Client{}).Get(t.Context(), Request{URL: "oci://" + p.address + "/policies:v1"}); err == nil || !strings.Contains(err.Error(), "127.0.0.1: the address is not public: allow its network in the chart's value policySources.allowedNetworks") {
		t.Errorf("a private address: %v", err)
	}
}

func TestContentIsVerified(t *testing.T) {
	p := newPublisher(t)
	p.sign(t, p.push(t, "v1", good))
	layers := 0
	p.tamper = func(path string, body []byte) []byte {
		if strings.Contains(path, "/blobs/") && bytes.HasPrefix(body, []byte("apiVersion")) {
			layers++
			return bytes.Replace(body, []byte("package a"), []byte("package b"), 1)
		}
		return body
	}
	_, err := p.get(t, Request{})
	if err == nil || !strings.Contains(err.Error(), "error verifying sha256 checksum") || layers != 1 {
		t.Errorf("%d layers: %v", layers, err)
	}
	// A larger layer than the manifest states is not read to its end.
	p.tamper = func(path string, body []byte) []byte {
		if strings.Contains(path, "/blobs/") && bytes.HasPrefix(body, []byte("apiVersion")) {
			return append(body, make([]byte, 1<<20)...)
		}
		return body
	}
	if _, err := p.get(t, Request{}); err == nil || !strings.Contains(err.Error(), "it does not have ") {
		t.Error(err)
	}
}

func TestCredentials(t *testing.T) {
	repository, err := name.NewRepository("registry.example.com:5000/platform/policies")
	fatal(t, err)
	auth := func(user string) map[string]any {
		return map[string]any{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":secret"))}
	}
	for title, tc := range map[string]struct {
		auths map[string]any
		want  string
	}{
		"the host":                       {map[string]any{"registry.example.com:5000": auth("host")}, "host"},
		"with a scheme and a version":    {map[string]any{"https://registry.example.com:5000/v2/": auth("host")}, "host"},
		"the longest path":               {map[string]any{"registry.example.com:5000": auth("host"), "registry.example.com:5000/platform": auth("path")}, "path"},
		"another host":                   {map[string]any{"registry.example.com": auth("host")}, "Secret a/b has no credentials for registry.example.com:5000"},
		"a host that begins like it":     {map[string]any{"registry.example.com:500": auth("host")}, "Secret a/b has no credentials for registry.example.com:5000"},
		"a repository that begins alike": {map[string]any{"registry.example.com:5000/plat": auth("host")}, "Secret a/b has no credentials for registry.example.com:5000"},
		"no configuration":               {map[string]any{"a": map[string]any{"auth": "secret!"}}, "Secret a/b is not a Docker configuration"},
	} {
		t.Run(title, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"auths": tc.auths})
			fatal(t, err)
			found, err := credentialsFor(repository, Credentials{Docker: raw, Secret: "Secret a/b"})
			got := found.Username
			if err != nil {
				got = err.Error()
			}
			if got != tc.want || err == nil && found.Password != "secret" {
				t.Errorf("got %s", got)
			}
		})
	}
	p := newPublisher(t)
	docker := []byte(`{"auths": {"` + p.address + `": {"username": "u", "password": "p"}}}`)
	if _, err := p.get(t, Request{With: Credentials{Docker: docker, Secret: "Secret a/b"}}); err == nil || !strings.HasSuffix(err.Error(), errPlain.Error()) {
		t.Errorf("without TLS: %v", err)
	}
}
