package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/internal/cosign"
	"github.com/vmstencil/stencil/internal/outbound"
)

const (
	// Timeout limits a check: all requests for one artifact.
	Timeout = 30 * time.Second
	// maximumAnswers is the maximum size of all answers of a check in bytes: manifests, signatures and layers.
	maximumAnswers = 16 << 20
	scheme         = "oci://"
)

// Errors for what a registry may not do, and for artifacts without a signature.
var (
	ErrNotSigned = errors.New("no signature of spec.verify.publicKeys")
	errLarge     = fmt.Errorf("the answers of the registry are larger than %d MiB", maximumAnswers>>20)
	errPlain     = errors.New("with spec.secretRef or spec.certConfigMap the registry has to serve HTTPS")
)

// Credentials are those for the registry of an artifact.
type Credentials struct {
	// Docker is the configuration of a Secret of type kubernetes.io/dockerconfigjson, nil without a Secret. Secret is its kind, namespace and name, for
	// messages.
	Docker []byte
	Secret string
	// Authorities are certificates in PEM that are trusted besides those of the system.
	Authorities [][]byte
}

// Artifact is a verified artifact.
type Artifact struct {
	Digest   string
	Policies []*unstructured.Unstructured
}

// Client reads artifacts.
type Client struct {
	// Allowed are private networks that may be connected to. Addresses that are not public are denied otherwise.
	Allowed []netip.Prefix
	// Cluster are networks of the cluster, which are denied.
	Cluster []netip.Prefix
}

// Request is an artifact to read.
type Request struct {
	// URL of the source. Digest, if it is set, replaces the tag or the digest in it.
	URL, Digest string
	// PublicKeys are those in PEM of which one must have signed the artifact.
	PublicKeys []string
	With       Credentials
	// Held is returned without reading the layers again, if it is what the URL refers to. It may be nil.
	Held *Artifact
}

// Get finds the manifest, verifies the signature of its digest, and only then reads the policies. The error is an *InvalidError if the artifact is
// not valid, ErrNotSigned without a valid signature, and another if this is not known.
func (c *Client) Get(ctx context.Context, request Request) (*Artifact, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	reference, err := parse(request.URL, request.Digest)
	if err != nil {
		return nil, fmt.Errorf("spec.url: %w", err)
	}
	verifiers, err := cosign.Verifiers("spec.verify.publicKeys", request.PublicKeys...)
	if err != nil {
		return nil, err
	}
	options, err := c.options(ctx, reference, request.With)
	if err != nil {
		return nil, err
	}
	descriptor, err := remote.Get(reference, options...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", reference, err)
	}
	digest := descriptor.Digest.String()
	signed, err := cosign.IsSigned(reference.Context(), options, digest, verifiers)
	if err != nil {
		return nil, fmt.Errorf("reading the signatures of %s, %s: %w", reference, digest, err)
	}
	if !signed {
		return nil, fmt.Errorf("%s, %s: %w", reference, digest, ErrNotSigned)
	}
	if request.Held != nil && request.Held.Digest == digest {
		return request.Held, nil
	}
	policies, err := fetch(reference, descriptor.Manifest, options)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", reference, digest, err)
	}
	return &Artifact{Digest: digest, Policies: policies}, nil
}

// fetch reads the policies of a manifest, whose digest is that of its bytes.
func fetch(reference name.Reference, manifest []byte, options []remote.Option) ([]*unstructured.Unstructured, error) {
	layers, err := decodeManifest(manifest)
	if err != nil {
		return nil, err
	}
	d := decoder{from: map[string]string{}}
	for i, each := range layers {
		digest, err := name.NewDigest(reference.Context().Name() + "@" + each.Digest)
		if err != nil {
			return nil, invalid("%s has the digest %.128q: %w", each.name(i), each.Digest, err)
		}
		content, err := read(digest, each.Size, options)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", each.name(i), err)
		}
		if err := d.layer(each.name(i), content); err != nil {
			return nil, err
		}
	}
	return d.policies, nil
}

// read returns a blob, of which the size and the digest are verified.
func read(digest name.Digest, size int64, options []remote.Option) ([]byte, error) {
	blob, err := remote.Layer(digest, options...)
	if err != nil {
		return nil, err
	}
	// The reader verifies the digest.
	reader, err := blob.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	content, err := io.ReadAll(io.LimitReader(reader, size+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) != size {
		return nil, invalid("it does not have %d bytes, as the manifest states", size)
	}
	return content, nil
}

func parse(url, digest string) (name.Reference, error) {
	reference, err := name.ParseReference(strings.TrimPrefix(url, scheme))
	if err != nil || digest == "" {
		return reference, err
	}
	return reference.Context().Digest(digest), nil
}

// options returns the options for requests about an artifact, which end with ctx.
func (c *Client) options(ctx context.Context, reference name.Reference, with Credentials) ([]remote.Option, error) {
	transport, err := outbound.Transport(outbound.Networks{Allowed: c.Allowed, Cluster: c.Cluster}, outbound.PolicySources, with.Authorities)
	if err != nil {
		return nil, fmt.Errorf("spec.certConfigMap: %w", err)
	}
	context.AfterFunc(ctx, transport.CloseIdleConnections)
	var plain error
	if with.Docker != nil || len(with.Authorities) > 0 {
		plain = errPlain
	}
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(outbound.Limit(transport, maximumAnswers, errLarge, plain)),
		remote.WithRetryPredicate(func(error) bool { return false }),
	}
	if with.Docker == nil {
		return options, nil
	}
	found, err := credentialsFor(reference.Context(), with)
	if err != nil {
		return nil, fmt.Errorf("spec.secretRef: %w", err)
	}
	return append(options, remote.WithAuth(authn.FromConfig(found))), nil
}

// credentialsFor returns the credentials for a repository, of the entry with the longest name that it begins with. Errors have nothing of the Secret.
func credentialsFor(repository name.Repository, with Credentials) (authn.AuthConfig, error) {
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if json.Unmarshal(with.Docker, &config) != nil {
		return authn.AuthConfig{}, fmt.Errorf("%s is not a Docker configuration", with.Secret)
	}
	var best string
	var found *authn.AuthConfig
	for key, each := range config.Auths {
		at := strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
		at = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(at, "/"), "/v1"), "/v2")
		if !strings.HasPrefix(repository.Name()+"/", at+"/") || found != nil && len(at) <= len(best) {
			continue
		}
		best, found = at, &each
	}
	if found == nil {
		return authn.AuthConfig{}, fmt.Errorf("%s has no credentials for %s", with.Secret, repository.RegistryStr())
	}
	return *found, nil
}
