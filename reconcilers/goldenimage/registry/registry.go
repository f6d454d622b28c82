// Package registry finds the newest image of a container registry.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
	"github.com/vmstencil/stencil/internal/outbound"
)

const (
	// Timeout limits a check: all requests for one image.
	Timeout = 30 * time.Second
	// maximumAnswers is the maximum size of all answers of a check in bytes: pages of tags, and manifests.
	maximumAnswers = 8 << 20
)

// Client checks registries.
type Client struct {
	// Allowed are private networks that may be connected to. Addresses that are not public are denied otherwise.
	Allowed []netip.Prefix
	// Cluster are networks of the cluster, which are denied.
	Cluster []netip.Prefix
}

// Newest returns the newest image of a source for each architecture.
func (c *Client) Newest(ctx context.Context, source *v1alpha1.GoldenImageRegistry, architectures []string, with outbound.Credentials) ([]goldenimage.Found, error) {
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
func (c *Client) connect(ctx context.Context, source *v1alpha1.GoldenImageRegistry, with outbound.Credentials) (name.Repository, []remote.Option, error) {
	repository, err := name.NewRepository(strings.TrimPrefix(source.URL, "docker://"))
	if err != nil {
		return repository, nil, fmt.Errorf("spec.source.registry.url: %w", err)
	}
	transport, err := outbound.Transport(outbound.Networks{Allowed: c.Allowed, Cluster: c.Cluster}, outbound.GoldenImages, with.Authorities)
	if err != nil {
		return repository, nil, fmt.Errorf("spec.source.registry.certConfigMap: %w", err)
	}
	context.AfterFunc(ctx, transport.CloseIdleConnections)
	var plain error
	if with.Username != "" || with.Password != "" || len(with.Authorities) > 0 {
		// The library tries requests without TLS too if an address is private: they could contain credentials.
		plain = errPlain
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(outbound.Limit(transport, maximumAnswers, errLarge, plain)), remote.WithRetryPredicate(func(error) bool { return false })}
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

// Errors for what a registry may not do.
var (
	errLarge = fmt.Errorf("the answers of the registry are larger than %d MiB", maximumAnswers>>20)
	errPlain = errors.New("with spec.source.registry.secretRef or certConfigMap the registry has to serve HTTPS")
)
