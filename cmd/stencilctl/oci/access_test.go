package oci

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/cosign"
)

func TestCredentials(t *testing.T) {
	s := newServer(t)
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, is := r.BasicAuth(); is && user == "robot" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	config := folderWith(t, map[string]string{"config.json": `{"auths":{"` + s.host + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("robot:secret")) + `"}}}`})
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if code, _, messages := run(t.Context(), "push", web(t), s.at("web:v1")); code != cli.ExitCluster || !strings.Contains(messages, "401") {
		t.Errorf("exit code %d, %s", code, messages)
	}
	t.Setenv("DOCKER_CONFIG", config)
	succeed(t, "push", web(t), s.at("web:v1"))
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", s.at("web:v1"), "--output-folder", out)
	isWeb(t, out)
}

// sign signs a digest as cosign does, and returns a file with the public key.
func sign(t *testing.T, repository name.Repository, digest string) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := must(signature.LoadSigner(private, crypto.SHA256))
	payload := []byte(`{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":"` + digest + `"},"type":"cosign container image signature"},"optional":null}`)
	made := must(signer.SignMessage(bytes.NewReader(payload)))
	image := must(mutate.Append(empty.Image, mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{cosign.SignatureAnnotation: base64.StdEncoding.EncodeToString(made)},
	}))
	if err := remote.Write(repository.Tag(strings.Replace(digest, ":", "-", 1)+".sig"), image); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folderWith(t, map[string]string{"cosign.pub": string(must(cryptoutils.MarshalPublicKeyToPEM(private.Public())))}), "cosign.pub")
}

func TestSignatures(t *testing.T) {
	s := newServer(t)
	pinned := succeed(t, "push", web(t), s.at("web:v1"))
	repository := must(name.ParseReference(strings.TrimPrefix(pinned, scheme))).Context()
	key := sign(t, repository, digestOf(pinned))
	other := sign(t, repository, "sha256:"+strings.Repeat("0", 64))
	out := filepath.Join(t.TempDir(), "out")
	code, table, messages := run(t.Context(), "inspect", s.at("web:v1"), "--key", other, "-o", "json")
	if code != cli.ExitFindings || !strings.Contains(table, `"signed": false`) {
		t.Errorf("exit code %d, %s%s", code, table, messages)
	}
	code, _, messages = run(t.Context(), "pull", s.at("web:v1"), "--key", other, "--output-folder", out)
	if code != cli.ExitUsage || !strings.Contains(messages, s.at("web:v1")+" is not signed by the key in "+other) {
		t.Errorf("exit code %d, %s", code, messages)
	}
	if _, err := os.Stat(out + partial); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("layers were received: %v", err)
	}
	succeed(t, "pull", s.at("web:v1"), "--key", key, "--output-folder", out)
	isWeb(t, out)
}
