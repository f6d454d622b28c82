// Package images runs a container registry on loopback, whose tags tests move. The images in it have random content: simulated nodes copy no
// disk.
package images

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// layerSize is the size of an image's layer in bytes.
const layerSize = 64

// Registry is a registry that runs until Close.
type Registry struct {
	server  *httptest.Server
	down    atomic.Bool
	refused atomic.Int64
}

// Start starts an empty registry, which serves HTTP to everyone.
func Start() *Registry {
	r := &Registry{}
	r.server = httptest.NewServer(r.handler("", ""))
	return r
}

// StartPrivate starts an empty registry, which serves HTTPS to a user with a password.
func StartPrivate(user, password string) *Registry {
	r := &Registry{}
	r.server = httptest.NewUnstartedServer(r.handler(user, password))
	// Clients that do not trust the certificate are part of tests.
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.server.StartTLS()
	return r
}

// Certificate is the certificate of a private registry in PEM, which is its own authority.
func (r *Registry) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
}

// handler serves the registry to a user, to everyone if the name is empty.
func (r *Registry) handler(user, password string) http.Handler {
	serve := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if r.down.Load() {
			r.refused.Add(1)
			http.Error(w, "this registry is down", http.StatusServiceUnavailable)
			return
		}
		if name, given, _ := request.BasicAuth(); user != "" && (name != user || given != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "a user and a password are required", http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, request)
	})
}

// Down makes the registry fail all requests until Up, which returns how many there were.
func (r *Registry) Down() { r.down.Store(true) }

// Up ends what Down has begun.
func (r *Registry) Up() int64 {
	r.down.Store(false)
	return r.refused.Swap(0)
}

// Close stops the registry.
func (r *Registry) Close() { r.server.Close() }

// Address returns the host and the port of the registry.
func (r *Registry) Address() string { return r.server.Listener.Addr().String() }

// Push pushes a new image, which these tags then name, and returns its digest.
func (r *Registry) Push(repository string, tags ...string) (string, error) {
	image, err := random.Image(layerSize, 1)
	if err != nil {
		return "", err
	}
	for _, tag := range tags {
		to, err := r.reference(repository, tag)
		if err != nil {
			return "", err
		}
		if err := remote.Write(to, image); err != nil {
			return "", fmt.Errorf("pushing %s: %w", to, err)
		}
	}
	digest, err := image.Digest()
	return digest.String(), err
}

// PushIndex pushes a new image for several architectures, and returns the digests by architecture, and that of the index under "".
func (r *Registry) PushIndex(repository, tag string, architectures ...string) (map[string]string, error) {
	index, digests := v1.ImageIndex(empty.Index), map[string]string{}
	for _, architecture := range architectures {
		image, err := random.Image(layerSize, 1)
		if err != nil {
			return nil, err
		}
		digest, err := image.Digest()
		if err != nil {
			return nil, err
		}
		digests[architecture] = digest.String()
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	to, err := r.reference(repository, tag)
	if err != nil {
		return nil, err
	}
	if err := remote.WriteIndex(to, index); err != nil {
		return nil, fmt.Errorf("pushing %s: %w", to, err)
	}
	digest, err := index.Digest()
	digests[""] = digest.String()
	return digests, err
}

func (r *Registry) reference(repository, tag string) (name.Reference, error) {
	return name.ParseReference(r.Address() + "/" + repository + ":" + tag)
}
