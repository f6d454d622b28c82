// Package s3 addresses and signs requests for objects in S3 buckets, as CDI's importer does.
package s3

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Keys of Secrets with the credentials for a bucket, as CDI reads them.
const (
	AccessKey = "accessKeyId"
	SecretKey = "secretKey"
)

const (
	// emptyPayload is the SHA-256 of nothing, which is signed as the body of a request without one.
	emptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	hexDigits    = "0123456789ABCDEF"
)

// Object is an object in a bucket.
type Object struct {
	at     *url.URL
	region string
	keys   aws.Credentials
}

// Open returns the object with a URL, https://HOST/BUCKET/KEY. An empty region is derived from the host.
func Open(of, region, accessKey, secretKey string) (*Object, error) {
	parsed, err := url.Parse(of)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	if region == "" {
		region = regionOf(parsed.Host)
	}
	name := "/" + strings.Trim(parsed.Path, "/")
	return &Object{
		at:     &url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: name, RawPath: escaped(name)},
		region: region, keys: aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
	}, nil
}

// URL is the address of the object as Amazon's libraries escape it, which is what is signed.
func (o *Object) URL() string { return o.at.String() }

// Sign signs a request without a body for the object. The headers of the request must not be changed afterwards.
func (o *Object) Sign(ctx context.Context, request *http.Request) error {
	request.Header.Set("X-Amz-Content-Sha256", emptyPayload)
	sign := signer.NewSigner(func(o *signer.SignerOptions) { o.DisableURIPathEscaping = true })
	return sign.SignHTTP(ctx, o.keys, request, emptyPayload, "s3", o.region, time.Now())
}

// Elsewhere reports whether an answer is that for a bucket in another region. A signature is valid for one URL, so that redirects are not followed.
func Elsewhere(response *http.Response) bool {
	return response.StatusCode == http.StatusBadRequest || response.StatusCode/100 == 3
}

var amazon = regexp.MustCompile(`s3\.(.+)\.amazonaws\.com`)

// regionOf returns the region of a host as CDI's importer derives it, so that the same signature is valid for both.
func regionOf(host string) string {
	if parts := amazon.FindStringSubmatch(host); parts != nil {
		return parts[1]
	}
	first, _, _ := strings.Cut(host, ".")
	return first
}

// escaped returns a path as Amazon's libraries escape it.
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
