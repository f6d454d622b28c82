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
	"strings"
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
	// maximumAnswer is the maximum size of one answer in bytes: a list of tags, or a manifest.
	maximumAnswer = 8 << 20

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
	repository, err := name.NewRepository(strings.TrimPrefix(source.URL, "docker://"))
	if err != nil {
		return nil, fmt.Errorf("spec.source.registry.url: %w", err)
	}
	transport, err := c.transport(with.Authorities)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(limited{transport}), remote.WithRetryPredicate(func(error) bool { return false })}
	if with.Username != "" || with.Password != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: with.Username, Password: with.Password}))
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
	}
	return found, nil
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
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || shared.Contains(ip) {
		return fmt.Errorf("%s: %w", ip, errPrivate)
	}
	return nil
}

// shared is the address space between carriers and their customers (RFC 6598), which clusters use for pods.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// limited cuts answers, so that a registry cannot exhaust the memory.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maximumAnswer), response.Body}
	return response, nil
}
