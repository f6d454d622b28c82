package registry

import (
	"context"
	"fmt"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/cosign"
	"github.com/vmstencil/stencil/internal/outbound"
)

// Signed returns the digests of those images of a source that one of the keys, in PEM, has signed. Each image is its digest, followed by those of indexes that
// name it: the signature of one of them is enough. An error is returned if that is not known, or if a key is invalid.
func (c *Client) Signed(ctx context.Context, source *v1alpha1.GoldenImageRegistry, images [][]string, keys []string, with outbound.Credentials) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	repository, options, err := c.connect(ctx, source, with)
	if err != nil {
		return nil, err
	}
	verifiers, err := cosign.Verifiers("spec.verify.publicKeys", keys...)
	if err != nil {
		return nil, err
	}
	var signed []string
	for _, digests := range images {
		for _, digest := range digests {
			found, err := cosign.IsSigned(repository, options, digest, verifiers)
			if err != nil {
				return nil, fmt.Errorf("reading the signatures of %s@%s: %w", repository, digest, err)
			}
			if found {
				signed = append(signed, digests[0])
				break
			}
		}
	}
	return signed, nil
}
