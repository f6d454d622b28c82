// Package registry finds the newest image of a container registry.
package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
)

const (
	// Timeout limits a check: all requests for one image.
	Timeout = 30 * time.Second
	// maximumAnswers is the maximum size of all answers of a check in bytes: pages of tags, and manifests.
	maximumAnswers = 8 << 20

	connectTimeout = 10 * time.Second
)

// Credentials are the credentials for one image.
type Credentials struct {
	Username, Password string
	// Authorities are certificates in PEM that are trusted besides those of the system.
	Authorities [][]byte
}

// Client checks registries.
type Client struct {
	// Allowed are private networks that may be connected to. Addresses that are not public are denied otherwise.
	Allowed []netip.Prefix
}

// Newest returns the newest image of a source for each architecture.
func (c *Client) Newest(ctx context.Context, source *v1alpha1.GoldenImageRegistry, architectures []string, with Credentials) ([]goldenimage.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	repository, options, err := c.connect(ctx, source, with)
	if err != nil {
		return nil, err
	}
	tag := source.Tag
	if source.Tags != nil {
		tags, err := remote.List(repository, options...)
		if err != nil {
			return nil, fmt.Errorf("listing the tags of %s: %w", repository, err)
		}
		if tag, err = goldenimage.ChooseTag(*source.Tags, tags); err != nil {
			return nil, err
		}
	}
	if tag == "" {
		tag = name.DefaultTag
	}
	descriptor, err := remote.Get(repository.Tag(tag), options...)
	if err != nil {
		return nil, fmt.Errorf("reading %s:%s: %w", repository, tag, err)
	}
	if len(architectures) == 0 {
		return []goldenimage.Found{{Digest: descriptor.Digest.String(), Tag: tag}}, nil
	}
	found := make([]goldenimage.Found, len(architectures))
	for i, architecture := range architectures {
		digest, err := ofArchitecture(descriptor, architecture)
		if err != nil {
			return nil, fmt.Errorf("reading %s:%s: %w", repository, tag, err)
		}
		found[i] = goldenimage.Found{Digest: digest, Tag: tag}
		if descriptor.MediaType.IsIndex() {
			found[i].Index = descriptor.Digest.String()
		}
	}
	return found, nil
}

// connect returns the repository of a source, and the options for requests to it, which end with ctx.
func (c *Client) connect(ctx context.Context, source *v1alpha1.GoldenImageRegistry, with Credentials) (name.Repository, []remote.Option, error) {
	repository, err := name.NewRepository(strings.TrimPrefix(source.URL, "docker://"))
	if err != nil {
		return repository, nil, fmt.Errorf("spec.source.registry.url: %w", err)
	}
	transport, err := c.transport(with.Authorities)
	if err != nil {
		return repository, nil, err
	}
	context.AfterFunc(ctx, transport.CloseIdleConnections)
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(&limited{next: transport, onlyTLS: with.Username != "" || with.Password != "" || len(with.Authorities) > 0, left: maximumAnswers}), remote.WithRetryPredicate(func(error) bool { return false })}
	if with.Username != "" || with.Password != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: with.Username, Password: with.Password}))
	}
	return repository, options, nil
}

// ofArchitecture returns the digest of the image for an architecture.
func ofArchitecture(descriptor *remote.Descriptor, architecture string) (string, error) {
	if !descriptor.MediaType.IsIndex() {
		image, err := descriptor.Image()
		if err != nil {
			return "", err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return "", err
		}
		if config.Architecture != architecture {
			return "", fmt.Errorf("the image is for %q only: take %s out of spec.architectures", config.Architecture, architecture)
		}
		return descriptor.Digest.String(), nil
	}
	index, err := descriptor.ImageIndex()
	if err != nil {
		return "", err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	var has []string
	for _, one := range manifest.Manifests {
		if one.Platform == nil || one.Platform.OS != "linux" {
			continue
		}
		if one.Platform.Architecture == architecture {
			return one.Digest.String(), nil
		}
		has = append(has, one.Platform.Architecture)
	}
	if len(has) == 0 {
		return "", errors.New("it has no image for linux")
	}
	return "", fmt.Errorf("it has no image for linux/%s, only for %s: take %s out of spec.architectures", architecture, strings.Join(has, ", "), architecture)
}

// errPrivate is returned for an address that is not public.
var errPrivate = errors.New("the address is not public: allow its network in the chart's value goldenImages.allowedNetworks")

// transport returns a transport that checks each address that it connects to, after it was resolved.
func (c *Client) transport(authorities [][]byte) (*http.Transport, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, authority := range authorities {
		if !roots.AppendCertsFromPEM(authority) {
			return nil, errors.New("spec.source.registry.certConfigMap: it has a value without certificates in PEM")
		}
	}
	dialer := &net.Dialer{Timeout: connectTimeout, Control: func(_, address string, _ syscall.RawConn) error { return c.check(address) }}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment,
	}, nil
}

// check returns an error if an address, HOST:PORT with a resolved host, must not be connected to.
func (c *Client) check(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := to.Addr().Unmap().WithZone("")
	for _, network := range c.Allowed {
		if network.Contains(ip) {
			return nil
		}
	}
	real := ip
	if translated.Contains(ip) {
		bytes := ip.As16()
		real = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	special := slices.ContainsFunc(notPublic, func(network netip.Prefix) bool { return network.Contains(real) })
	if !real.IsGlobalUnicast() || real.IsPrivate() || special {
		return fmt.Errorf("%s: %w", ip, errPrivate)
	}
	return nil
}

var (
	// translated are addresses whose last 4 bytes are an IPv4 address, to which NAT64 connects (RFC 6052).
	translated = netip.MustParsePrefix("64:ff9b::/96")
	// notPublic are further networks of the registries of special addresses of IANA that may lead into a private network.
	notPublic = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),      // this host
		netip.MustParsePrefix("100.64.0.0/10"),  // carriers and their customers (RFC 6598), which clusters use for pods
		netip.MustParsePrefix("192.0.0.0/24"),   // protocols
		netip.MustParsePrefix("198.18.0.0/15"),  // benchmarks
		netip.MustParsePrefix("240.0.0.0/4"),    // reserved, which some networks use nevertheless
		netip.MustParsePrefix("::/96"),          // an IPv4 address in IPv6, deprecated
		netip.MustParsePrefix("64:ff9b:1::/48"), // local NAT64, of which the place of the IPv4 address is not known
		netip.MustParsePrefix("2001::/32"),      // Teredo
		netip.MustParsePrefix("2002::/16"),      // 6to4
		netip.MustParsePrefix("fec0::/10"),      // site-local, deprecated
	}
)

// Errors for what a registry may not do.
var (
	errLarge = fmt.Errorf("the answers of the registry are larger than %d MiB", maximumAnswers>>20)
	errPlain = errors.New("with spec.source.registry.secretRef or certConfigMap the registry has to serve HTTPS")
)

// limited limits all answers together, so that a registry cannot exhaust the memory, with pages that never end either.
type limited struct {
	next http.RoundTripper
	// onlyTLS denies requests without TLS, which the library tries too if an address is private: they could contain credentials.
	onlyTLS bool
	mutex   sync.Mutex
	// left is the number of bytes that may still be read.
	left int
}

func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if l.onlyTLS && request.URL.Scheme != "https" {
		return nil, errPlain
	}
	response, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &limitedBody{response.Body, l}
	return response, nil
}

type limitedBody struct {
	io.ReadCloser
	limit *limited
}

func (b *limitedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.limit.mutex.Lock()
	defer b.limit.mutex.Unlock()
	if b.limit.left -= n; b.limit.left < 0 {
		return 0, errLarge
	}
	return n, err
}
