package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/vmstencil/stencil/internal/cosign"
	"github.com/vmstencil/stencil/internal/resume"
	"github.com/vmstencil/stencil/oci"
)

const (
	// attempts is how often a transfer is continued without a byte of progress.
	attempts         = 5
	maximumRedirects = 10
)

// permanentError is an error after which no other attempt is made.
type permanentError struct{ error }

func (p *permanentError) Unwrap() error { return p.error }

// Options of a connection.
type Options struct {
	// PlainHTTP permits a registry without TLS that is not on loopback.
	PlainHTTP bool
	// Transport connects, and checks addresses itself. Nil is that of Go, and redirects of the registry to private addresses are then denied.
	Transport http.RoundTripper
	// Credentials authenticate. Nil are those of docker login or podman login.
	Credentials authn.Authenticator
	// PlainHTTPHint is what permits PlainHTTP, for messages.
	PlainHTTPHint string
	// Uploads is a folder for the addresses of unfinished uploads, with which another command continues them. If it is empty, they end with the
	// command.
	Uploads string
	// Pace is how slowly the registry may send a blob that is streamed.
	Pace resume.Pace
	// Wait waits before an attempt to continue a transfer, numbered from 1. Nil waits 1 s, then twice as long each time.
	Wait func(ctx context.Context, attempt int) error
}

// Repository is the repository of a reference.
type Repository struct {
	reference name.Reference
	options   Options
	guarded   http.RoundTripper
	// client authenticates. It is made by connect.
	client *http.Client
}

// Open parses a reference: HOST/REPOSITORY:TAG or HOST/REPOSITORY@DIGEST. It does not connect.
func Open(reference string, options Options) (*Repository, error) {
	strict := []name.Option{name.StrictValidation}
	if options.PlainHTTP {
		strict = append(strict, name.Insecure)
	}
	parsed, err := name.ParseReference(reference, strict...)
	if err != nil {
		return nil, fmt.Errorf("%w; want HOST/REPOSITORY:TAG or HOST/REPOSITORY@sha256:DIGITS", err)
	}
	if options.Wait == nil {
		options.Wait = wait
	}
	if options.PlainHTTPHint == "" {
		options.PlainHTTPHint = "--plain-http"
	}
	next := options.Transport
	if next == nil {
		base := http.DefaultTransport.(*http.Transport).Clone()
		// A registry that does not answer is a cut, too. Some need minutes to store what was uploaded.
		base.ResponseHeaderTimeout = 10 * time.Minute
		next = base
	}
	return &Repository{reference: parsed, options: options, guarded: &guard{next, options.PlainHTTP, options.PlainHTTPHint}}, nil
}

func wait(ctx context.Context, attempt int) error {
	timer := time.NewTimer(time.Second << (attempt - 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// guard denies requests without TLS, to which the library falls back for private addresses, and to which a registry may redirect.
type guard struct {
	next  http.RoundTripper
	plain bool
	hint  string
}

func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !g.plain && !loopback(request.URL.Hostname()) {
		return nil, &permanentError{fmt.Errorf("%s does not serve HTTPS, or redirects to an address that does not: %s permits it", request.URL.Host, g.hint)}
	}
	return g.next.RoundTrip(request)
}

// external rejects another host in a private network, to which a registry sends requests.
func external(registry, to *url.URL) error {
	host := to.Hostname()
	if host == registry.Hostname() {
		return nil
	}
	address, err := netip.ParseAddr(host)
	if loopback(host) || err == nil && (address.IsPrivate() || address.IsLinkLocalUnicast()) {
		return &permanentError{fmt.Errorf("the registry %s redirects to the private address %s", registry.Host, to.Host)}
	}
	return nil
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// String is the reference.
func (r *Repository) String() string { return r.reference.String() }

// Pinned is the reference of a digest in the repository.
func (r *Repository) Pinned(digest string) string {
	return r.reference.Context().Digest(digest).String()
}

func (r *Repository) remote(ctx context.Context) []remote.Option {
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(r.guarded)}
	if r.options.Credentials != nil {
		return append(options, remote.WithAuth(r.options.Credentials))
	}
	return append(options, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// Connect checks that the registry can be reached, and accepts the credentials for uploads.
func (r *Repository) Connect(ctx context.Context) error { return r.connect(ctx, transport.PushScope) }

// connect authenticates.
func (r *Repository) connect(ctx context.Context, scope string) error {
	if r.client != nil {
		return nil
	}
	repository := r.reference.Context()
	authenticator := r.options.Credentials
	if authenticator == nil {
		found, err := authn.Resolve(ctx, authn.DefaultKeychain, repository)
		if err != nil {
			return fmt.Errorf("reading the credentials for %s: %w", repository.Registry, err)
		}
		authenticator = found
	}
	authenticated, err := transport.NewWithContext(ctx, repository.Registry, authenticator, r.guarded, []string{repository.Scope(scope)})
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", repository.Registry, err)
	}
	r.client = &http.Client{Transport: authenticated, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		if len(via) >= maximumRedirects {
			return &permanentError{fmt.Errorf("%s redirects more than %d times", via[0].URL.Host, maximumRedirects)}
		}
		if r.options.Transport != nil {
			return nil
		}
		return external(via[0].URL, request.URL)
	}}
	return nil
}

// address is the address of a part of the repository.
func (r *Repository) address(part string) string {
	repository := r.reference.Context()
	at := url.URL{Scheme: repository.Scheme(), Host: repository.RegistryStr(), Path: "/v2/" + repository.RepositoryStr() + part}
	return at.String()
}

// Found is an artifact of a registry.
type Found struct {
	*oci.Artifact
	Resource *oci.Resource
	// Config is the resource as it is stored.
	Config []byte
	// Digests are those that a signature may have: of the manifest, and of the index that refers to it.
	Digests []string
}

// Artifact reads the manifest and the resource. Their digests are verified.
func (r *Repository) Artifact(ctx context.Context) (*Found, error) {
	descriptor, err := remote.Get(r.reference, r.remote(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r, err)
	}
	found := &Found{}
	if descriptor.MediaType == types.OCIImageIndex {
		chosen, err := oci.Choose(descriptor.Manifest)
		if err != nil {
			return nil, err
		}
		found.Digests = []string{descriptor.Digest.String()}
		if descriptor, err = remote.Get(r.reference.Context().Digest(chosen.Digest.String()), r.remote(ctx)...); err != nil {
			return nil, fmt.Errorf("reading %s: %w", r, err)
		}
	}
	if found.Artifact, err = oci.Decode(descriptor.Manifest); err != nil {
		return nil, err
	}
	found.Digests = append(found.Digests, found.Descriptor.Digest.String())
	if err := r.connect(ctx, transport.PullScope); err != nil {
		return nil, err
	}
	body, _, err := r.get(ctx, found.Artifact.Config, 0)
	if err != nil {
		return nil, fmt.Errorf("reading the config of %s: %w", r, err)
	}
	found.Config, err = io.ReadAll(oci.Verify(body, found.Artifact.Config))
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	found.Resource, err = oci.DecodeResource(found.Kind, found.Config)
	return found, err
}

// Verifier has a public key.
type Verifier []signature.Verifier

// NewVerifier reads a public key in PEM.
func NewVerifier(key string) (Verifier, error) { return cosign.Verifiers("public key", key) }

// Signed reports whether one of the digests has a valid signature.
func (r *Repository) Signed(ctx context.Context, digests []string, verifier Verifier) (bool, error) {
	for _, digest := range digests {
		signed, err := cosign.IsSigned(r.reference.Context(), r.remote(ctx), digest, verifier)
		if signed || err != nil {
			return signed, err
		}
	}
	return false, nil
}

// temporary reports whether another attempt may succeed. An error that is no answer of the registry is one of the connection.
func temporary(err error) bool {
	var answer *transport.Error
	if errors.As(err, &answer) {
		return answer.Temporary() || answer.StatusCode >= http.StatusInternalServerError
	}
	var malformed *oci.Error
	var permanent *permanentError
	var local *fs.PathError
	return !errors.As(err, &malformed) && !errors.As(err, &permanent) && !errors.As(err, &local) && !errors.Is(err, context.Canceled) && !errors.Is(err, resume.ErrSlow)
}

// Temporary reports whether another attempt may succeed after an error.
func Temporary(err error) bool { return temporary(err) }

// persist calls transfer until it succeeds. transfer returns the number of bytes by which it progressed.
func (r *Repository) persist(ctx context.Context, transfer func() (int64, error)) error {
	for attempt := 1; ; attempt++ {
		progress, err := transfer()
		if err == nil || !temporary(err) || ctx.Err() != nil {
			return err
		}
		if progress > 0 {
			attempt = 1
		}
		if attempt > attempts {
			return err
		}
		if err := r.options.Wait(ctx, attempt); err != nil {
			return err
		}
	}
}
