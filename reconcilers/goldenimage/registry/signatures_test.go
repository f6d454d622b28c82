package registry

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	containers "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/cosign"
	"github.com/vmstencil/stencil/internal/outbound"
)

// key is a key that signs, and its public half in PEM.
type key struct {
	signature.Signer
	public string
}

func newKey(t *testing.T, private crypto.PrivateKey, err error) key {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := signature.LoadSigner(private, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	public, err := signer.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := cryptoutils.MarshalPublicKeyToPEM(public)
	if err != nil {
		t.Fatal(err)
	}
	return key{signer, string(text)}
}

func ecdsaKey(t *testing.T) key {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return newKey(t, private, err)
}

func (k key) sign(t *testing.T, message []byte) []byte {
	t.Helper()
	made, err := k.SignMessage(bytes.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// simple is a payload as cosign writes it.
func simple(digest, kind string) []byte {
	return []byte(`{"critical":{"identity":{"docker-reference":"registry.example.com/disks/fedora"},"image":{"docker-manifest-digest":"` + digest + `"},"type":"` + kind + `"},"optional":null}`)
}

const cosignKind = "cosign container image signature"

// layers is an image whose layers are payloads with their signatures.
func layers(t *testing.T, payloads map[string][]byte) v1.Image {
	t.Helper()
	made := empty.Image
	for content, sign := range payloads {
		var err error
		made, err = mutate.Append(made, mutate.Addendum{
			Layer:       static.NewLayer([]byte(content), "application/vnd.dev.cosign.simplesigning.v1+json"),
			Annotations: map[string]string{cosign.SignatureAnnotation: base64.StdEncoding.EncodeToString(sign)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// statement is what a bundle states about an image.
func statement(digest, predicate string) []byte {
	return []byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + strings.TrimPrefix(digest, "sha256:") + `"}}],"predicateType":"` + predicate + `","predicate":{}}`)
}

// bundle is a bundle that refers to an image.
func bundle(t *testing.T, to v1.Descriptor, content string) v1.Image {
	t.Helper()
	made, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), cosign.BundleType+".v0.3+json"),
		mutate.Addendum{Layer: static.NewLayer([]byte(content), cosign.BundleType+".v0.3+json")})
	if err != nil {
		t.Fatal(err)
	}
	return mutate.Subject(made, to).(v1.Image)
}

// write pushes an image under a name with a tag.
func write(t *testing.T, to string, made v1.Image) {
	t.Helper()
	tag, err := name.NewTag(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, made); err != nil {
		t.Fatal(err)
	}
}

func envelope(t *testing.T, k key, payloadType string, payload []byte) string {
	t.Helper()
	made, err := dsse.WrapSigner(k.Signer, payloadType).SignMessage(bytes.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	return `{"mediaType":"` + cosign.BundleType + `.v0.3+json","verificationMaterial":{"publicKey":{"hint":""}},"dsseEnvelope":` + string(made) + `}`
}

func TestSigned(t *testing.T) {
	owner, other := ecdsaKey(t), ecdsaKey(t)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	edwards := newKey(t, ed, err)
	rivest, err := rsa.GenerateKey(rand.Reader, 2048)
	long := newKey(t, rivest, err)

	inTag := func(payloads func(digest string) map[string][]byte) func(*testing.T, name.Repository, v1.Descriptor) {
		return func(t *testing.T, repository name.Repository, of v1.Descriptor) {
			write(t, repository.Tag(strings.Replace(of.Digest.String(), ":", "-", 1)+".sig").String(), layers(t, payloads(of.Digest.String())))
		}
	}
	signedBy := func(k key) func(*testing.T, name.Repository, v1.Descriptor) {
		return inTag(func(digest string) map[string][]byte {
			text := simple(digest, cosignKind)
			return map[string][]byte{string(text): k.sign(t, text)}
		})
	}
	inBundle := func(content func(digest string) string) func(*testing.T, name.Repository, v1.Descriptor) {
		return func(t *testing.T, repository name.Repository, of v1.Descriptor) {
			made := bundle(t, of, content(of.Digest.String()))
			if err := remote.Write(repository.Digest(digestOf(t, made)), made); err != nil {
				t.Fatal(err)
			}
		}
	}
	const another = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for text, tc := range map[string]struct {
		sign func(*testing.T, name.Repository, v1.Descriptor)
		keys []string
		want bool
	}{
		"not at all":        {func(*testing.T, name.Repository, v1.Descriptor) {}, []string{owner.public}, false},
		"in a tag":          {signedBy(owner), []string{owner.public}, true},
		"by the second key": {signedBy(owner), []string{other.public, owner.public}, true},
		"with Ed25519":      {signedBy(edwards), []string{edwards.public}, true},
		"with RSA":          {signedBy(long), []string{long.public}, true},
		"by another key":    {signedBy(other), []string{owner.public}, false},
		"as another image": {inTag(func(string) map[string][]byte {
			text := simple(another, cosignKind)
			return map[string][]byte{string(text): owner.sign(t, text)}
		}), []string{owner.public}, false},
		"as something else": {inTag(func(digest string) map[string][]byte {
			text := simple(digest, "atomic container signature")
			return map[string][]byte{string(text): owner.sign(t, text)}
		}), []string{owner.public}, false},
		"with a signature of another payload": {inTag(func(digest string) map[string][]byte {
			return map[string][]byte{string(simple(digest, cosignKind)): owner.sign(t, simple(another, cosignKind))}
		}), []string{owner.public}, false},
		"after one of another key": {inTag(func(digest string) map[string][]byte {
			text := simple(digest, cosignKind)
			return map[string][]byte{string(text) + " ": other.sign(t, text), string(text): owner.sign(t, text), "{": nil}
		}), []string{owner.public}, true},

		"in a bundle": {inBundle(func(digest string) string {
			return envelope(t, owner, cosign.InTotoType, statement(digest, cosign.SignPredicate))
		}), []string{other.public, owner.public}, true},
		"in a bundle of another key": {inBundle(func(digest string) string {
			return envelope(t, other, cosign.InTotoType, statement(digest, cosign.SignPredicate))
		}), []string{owner.public}, false},
		"in a bundle about another image": {inBundle(func(string) string {
			return envelope(t, owner, cosign.InTotoType, statement(another, cosign.SignPredicate))
		}), []string{owner.public}, false},
		"in a bundle that lists parts only": {inBundle(func(digest string) string {
			return envelope(t, owner, cosign.InTotoType, statement(digest, "https://spdx.dev/Document"))
		}), []string{owner.public}, false},
		"in a bundle of another type": {inBundle(func(digest string) string {
			return envelope(t, owner, "application/json", statement(digest, cosign.SignPredicate))
		}), []string{owner.public}, false},
		"in a bundle without a signature": {inBundle(func(digest string) string {
			return `{"dsseEnvelope":{"payloadType":"` + cosign.InTotoType + `","payload":"` + base64.StdEncoding.EncodeToString(statement(digest, cosign.SignPredicate)) + `","signatures":[]}}`
		}), []string{owner.public}, false},
		"in no JSON": {inBundle(func(string) string { return "{" }), []string{owner.public}, false},
	} {
		for api, options := range map[string][]containers.Option{"referrers": {containers.WithReferrersSupport(true)}, "tags": nil} {
			t.Run(text+"/"+api, func(t *testing.T) {
				registry := serve(t, containers.New(append(options, containers.Logger(log.New(io.Discard, "", 0)))...))
				made := image(t, "amd64")
				write(t, registry+"/disks/fedora:41", made)
				repository, err := name.NewRepository(registry + "/disks/fedora")
				if err != nil {
					t.Fatal(err)
				}
				manifest, err := made.RawManifest()
				if err != nil {
					t.Fatal(err)
				}
				digest, err := made.Digest()
				if err != nil {
					t.Fatal(err)
				}
				tc.sign(t, repository, v1.Descriptor{MediaType: types.DockerManifestSchema2, Size: int64(len(manifest)), Digest: digest})
				client := &Client{Allowed: loopback}
				got, err := client.Signed(t.Context(), &v1alpha1.GoldenImageRegistry{URL: registry + "/disks/fedora"}, [][]string{{digest.String()}}, tc.keys, outbound.Credentials{})
				if err != nil || (len(got) == 1) != tc.want {
					t.Errorf("got %v, error %v, want it signed: %v", got, err, tc.want)
				}
			})
		}
	}
}

// TestNotEverySignatureIsTried signs with a key that is not trusted until the limit is reached.
func TestNotEverySignatureIsTried(t *testing.T) {
	owner := ecdsaKey(t)
	for text, tc := range map[string]struct {
		others int
		want   bool
	}{"one fewer": {cosign.MaximumSignatures - 1, true}, "one too many": {cosign.MaximumSignatures, false}} {
		t.Run(text, func(t *testing.T) {
			registry := serve(t, handler())
			made := image(t, "amd64")
			digest := digestOf(t, made)
			write(t, registry+"/a/b:1", made)
			signed := empty.Image
			add := func(content, sign []byte) {
				var err error
				signed, err = mutate.Append(signed, mutate.Addendum{Layer: static.NewLayer(content, "text/plain"), Annotations: map[string]string{cosign.SignatureAnnotation: base64.StdEncoding.EncodeToString(sign)}})
				if err != nil {
					t.Fatal(err)
				}
			}
			for range tc.others {
				add(simple(digest, cosignKind), []byte("nothing"))
			}
			add(simple(digest, cosignKind), owner.sign(t, simple(digest, cosignKind)))
			write(t, registry+"/a/b:"+strings.Replace(digest, ":", "-", 1)+".sig", signed)
			client := &Client{Allowed: loopback}
			got, err := client.Signed(t.Context(), &v1alpha1.GoldenImageRegistry{URL: registry + "/a/b"}, [][]string{{digest}}, []string{owner.public}, outbound.Credentials{})
			if err != nil || (len(got) == 1) != tc.want {
				t.Errorf("got %v, error %v", got, err)
			}
		})
	}
}

func TestWhatPreventsVerifying(t *testing.T) {
	owner := ecdsaKey(t)
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	broken := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	endless := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "manifests") {
			return
		}
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		_, _ = w.Write(bytes.Repeat([]byte(" "), 2*maximumAnswers))
	}))
	for text, tc := range map[string]struct {
		registry, digest, key, want string
	}{
		"a registry that fails":    {broken, digest, owner.public, "reading the signatures of " + broken + "/a/b@" + digest + ": "},
		"an answer without an end": {endless, digest, owner.public, "reading the signatures of " + endless + "/a/b@" + digest + ": "},
		"a key that is none":       {broken, digest, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "spec.verify.publicKeys[0]: "},
		"a digest that is none":    {broken, "uid:1", owner.public, "/a/b@uid:1: "},
		"a private address":        {"10.0.0.1:5000", digest, owner.public, "the address is not public"},
	} {
		t.Run(text, func(t *testing.T) {
			client := &Client{Allowed: loopback}
			got, err := client.Signed(t.Context(), &v1alpha1.GoldenImageRegistry{URL: tc.registry + "/a/b"}, [][]string{{tc.digest}}, []string{tc.key}, outbound.Credentials{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, error %v, want %s", got, err, tc.want)
			}
		})
	}
}
