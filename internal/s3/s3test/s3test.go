// Package s3test verifies the signatures of requests in tests.
package s3test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Signed reports whether the signature of a request is that which Amazon's library makes of what has arrived, with these keys.
func Signed(ctx context.Context, r *http.Request, region, accessKey, secretKey string) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return false
	}
	again := &http.Request{Method: r.Method, Host: r.Host, Header: http.Header{}, URL: &url.URL{Scheme: "http", Host: r.Host, Path: decoded, RawPath: path}}
	_, names, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	for name := range strings.SplitSeq(names, ";") {
		if values := r.Header.Values(name); len(values) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	sign := signer.NewSigner(func(o *signer.SignerOptions) { o.DisableURIPathEscaping = true })
	keys := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}
	if err := sign.SignHTTP(ctx, keys, again, r.Header.Get("X-Amz-Content-Sha256"), "s3", region, at); err != nil {
		return false
	}
	return again.Header.Get("Authorization") == r.Header.Get("Authorization")
}
