package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/outbound"
	"github.com/vmstencil/stencil/internal/s3"
)

// object returns the digest of an object in a bucket, derived from the headers of a HEAD request. The request is addressed and signed like the GET request of
// CDI's importer.
func (c *Client) object(ctx context.Context, of string, image *v1alpha1.GoldenImageSpec, with outbound.Credentials, transport http.RoundTripper) (string, error) {
	if with.Username == "" || with.Password == "" {
		return "", fmt.Errorf("spec.source.s3.secretRef: the Secret must have the keys %s and %s", s3.AccessKey, s3.SecretKey)
	}
	object, err := s3.Open(of, "", with.Username, with.Password)
	if err != nil {
		return "", errors.New("spec.source.s3.url is no URL")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, object.URL(), nil)
	if err != nil {
		return "", errors.New("spec.source.s3.url is no URL")
	}
	if err := object.Sign(ctx, request); err != nil {
		return "", fmt.Errorf("signing the request for %s: %w", shown(of), err)
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("HEAD %s: %w", shown(of), withoutURL(err))
	}
	_ = response.Body.Close()
	if s3.Elsewhere(response) {
		return "", fmt.Errorf("%s: %d %s: the bucket may be in another region: use the URL https://s3.REGION.amazonaws.com/BUCKET/KEY of its region", shown(of), response.StatusCode, http.StatusText(response.StatusCode))
	}
	if response.StatusCode != http.StatusOK {
		return "", denied(of, response)
	}
	return version(of, response.Header, response.ContentLength, image)
}
