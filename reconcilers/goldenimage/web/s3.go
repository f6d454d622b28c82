package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/outbound"
)

const (
	// emptyPayload is the SHA-256 of nothing, which is signed as the body of a HEAD request.
	emptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	hexDigits    = "0123456789ABCDEF"
)

// object returns the digest of an object in a bucket, derived from the headers of a HEAD request. The request is addressed and signed like the GET request of
// CDI's importer.
func (c *Client) object(ctx context.Context, of string, image *v1alpha1.GoldenImageSpec, with outbound.Credentials, transport http.RoundTripper) (string, error) {
	parsed, err := url.Parse(of)
	if err != nil {
		return "", errors.New("spec.source.s3.url is no URL")
	}
	if with.Username == "" || with.Password == "" {
		return "", errors.New("spec.source.s3.secretRef: the Secret must have the keys accessKeyId and secretKey")
	}
	name := "/" + strings.Trim(parsed.Path, "/")
	to := &url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: name, RawPath: escaped(name)}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, to.String(), nil)
	if err != nil {
		return "", errors.New("spec.source.s3.url is no URL")
	}
	request.Header.Set("X-Amz-Content-Sha256", emptyPayload)
	sign := signer.NewSigner(func(o *signer.SignerOptions) { o.DisableURIPathEscaping = true })
	key := aws.Credentials{AccessKeyID: with.Username, SecretAccessKey: with.Password}
	if err := sign.SignHTTP(ctx, key, request, emptyPayload, "s3", region(parsed.Host), time.Now()); err != nil {
		return "", fmt.Errorf("signing the request for %s: %w", shown(of), err)
	}
	// A signature is valid for one URL, so that redirects are not followed.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("HEAD %s: %w", shown(of), withoutURL(err))
	}
	_ = response.Body.Close()
	if response.StatusCode == http.StatusBadRequest || response.StatusCode/100 == 3 {
		return "", fmt.Errorf("%s: %d %s: the bucket may be in another region: use the URL https://s3.REGION.amazonaws.com/BUCKET/KEY of its region", shown(of), response.StatusCode, http.StatusText(response.StatusCode))
	}
	if response.StatusCode != http.StatusOK {
		return "", denied(of, response)
	}
	return version(of, response.Header, response.ContentLength, image)
}

var amazon = regexp.MustCompile(`s3\.(.+)\.amazonaws\.com`)

// region returns the region of a host as CDI's importer derives it, so that the same signature is valid for both.
func region(host string) string {
	if parts := amazon.FindStringSubmatch(host); parts != nil {
		return parts[1]
	}
	first, _, _ := strings.Cut(host, ".")
	return first
}

// escaped returns a path as Amazon's libraries escape it, which is what is signed.
func escaped(name string) string {
	var text strings.Builder
	for _, one := range []byte(name) {
		if 'a' <= one && one <= 'z' || 'A' <= one && one <= 'Z' || '0' <= one && one <= '9' || strings.IndexByte("/-._~", one) >= 0 {
			text.WriteByte(one)
		} else {
			text.Write([]byte{'%', hexDigits[one>>4], hexDigits[one&15]})
		}
	}
	return text.String()
}
