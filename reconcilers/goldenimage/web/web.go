// Package web finds the newest version of a file of an HTTP server or an S3 bucket.
package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/outbound"
)

const (
	// Timeout limits a check: all requests for one image.
	Timeout = 30 * time.Second
	// maximumFile is the maximum size of a file of checksums in bytes.
	maximumFile = 1 << 20
	// maximumRedirects is the maximum number of redirects of one request.
	maximumRedirects = 5
	// digestVersion begins the digest of a file without checksum.
	digestVersion = "version:"
)

// Client checks servers.
type Client struct {
	// Allowed are private networks that may be connected to. Addresses that are not public are denied otherwise.
	Allowed []netip.Prefix
	// Cluster are networks of the cluster, which are denied.
	Cluster []netip.Prefix

	mutex sync.Mutex
	// read are the files of checksums that were read, by the key of the image.
	read map[string]checksums
}

// checksums is a file of checksums with what the server identifies it by.
type checksums struct{ url, etag, modified, digest string }

// Forget removes what is stored of an image. The key is that of Newest.
func (c *Client) Forget(key string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.read, key)
}

// Newest returns the digest of the newest version of a file: its checksum, or a digest of its URL and headers. The key identifies the image.
func (c *Client) Newest(ctx context.Context, key string, image *v1alpha1.GoldenImageSpec, with outbound.Credentials) (string, error) {
	if http := image.Source.HTTP; http != nil && http.Checksum != "" {
		return http.Checksum, nil
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	transport, err := outbound.Transport(outbound.Networks{Allowed: c.Allowed, Cluster: c.Cluster}, outbound.GoldenImages, with.Authorities)
	if err != nil {
		return "", fmt.Errorf("certConfigMap: %w", err)
	}
	defer transport.CloseIdleConnections()
	if s3 := image.Source.S3; s3 != nil {
		return c.object(ctx, s3.URL, image, with, transport)
	}
	source := image.Source.HTTP
	of, err := url.Parse(source.URL)
	if err != nil {
		return "", errors.New("spec.source.http.url is no URL")
	}
	client := &http.Client{Transport: &authenticated{transport, of.Host, with}, CheckRedirect: checkRedirect}
	if source.ChecksumFile != "" {
		return c.checksum(ctx, key, client, source.ChecksumFile, path.Base(of.Path))
	}
	header, size, err := describe(ctx, client, source.URL)
	if err != nil {
		return "", err
	}
	return version(source.URL, header, size, image)
}

// version returns the digest of a file's URL, ETag, Last-Modified and size.
func version(of string, header http.Header, size int64, image *v1alpha1.GoldenImageSpec) (string, error) {
	etag, modified := header.Get("ETag"), header.Get("Last-Modified")
	if etag == "" && modified == "" {
		return "", fmt.Errorf("%s: the server sends neither ETag nor Last-Modified, so that a newer version cannot be recognized: give checksum or checksumFile", shown(of))
	}
	// Other formats are compressed, or have data besides the disk's.
	if parsed, err := url.Parse(of); err == nil && strings.HasSuffix(parsed.Path, ".raw") && size > image.Storage.Size.Value() {
		return "", fmt.Errorf("%s has %d bytes, and spec.storage.size is %s: raise it", shown(of), size, image.Storage.Size.String())
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%d", of, etag, modified, size))
	return digestVersion + hex.EncodeToString(sum[:]), nil
}

// describe returns the header and the size of a file, -1 if it is not known, without reading it.
func describe(ctx context.Context, client *http.Client, of string) (http.Header, int64, error) {
	response, err := request(ctx, client, http.MethodHead, of, nil)
	if err != nil {
		return nil, 0, err
	}
	_ = response.Body.Close()
	switch response.StatusCode {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		// Some servers allow GET only, and a URL that is signed for GET is not valid for HEAD.
		if response, err = request(ctx, client, http.MethodGet, of, map[string]string{"Range": "bytes=0-0"}); err != nil {
			return nil, 0, err
		}
		_ = response.Body.Close()
	}
	if response.StatusCode == http.StatusPartialContent {
		var size int64 = -1
		if _, total, found := strings.Cut(response.Header.Get("Content-Range"), "/"); found {
			if _, err := fmt.Sscan(total, &size); err != nil {
				size = -1
			}
		}
		return response.Header, size, nil
	}
	if response.StatusCode != http.StatusOK {
		return nil, 0, denied(of, response)
	}
	return response.Header, response.ContentLength, nil
}

// checksum returns the checksum of a file name in a file of checksums.
func (c *Client) checksum(ctx context.Context, key string, client *http.Client, of, name string) (string, error) {
	c.mutex.Lock()
	before := c.read[key]
	c.mutex.Unlock()
	identified := of + " " + name
	conditions := map[string]string{}
	if before.url == identified {
		conditions["If-None-Match"], conditions["If-Modified-Since"] = before.etag, before.modified
	}
	response, err := request(ctx, client, http.MethodGet, of, conditions)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotModified && before.url == identified:
		return before.digest, nil
	case response.StatusCode != http.StatusOK:
		return "", denied(of, response)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maximumFile+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", shown(of), err)
	}
	if len(text) > maximumFile {
		return "", fmt.Errorf("%s is larger than %d MiB: it is no file of checksums", shown(of), maximumFile>>20)
	}
	digest, err := find(string(text), name)
	if err != nil {
		return "", fmt.Errorf("%s %w", shown(of), err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.read == nil {
		c.read = map[string]checksums{}
	}
	c.read[key] = checksums{identified, response.Header.Get("ETag"), response.Header.Get("Last-Modified"), digest}
	return digest, nil
}

// request sends a request. Its errors do not contain queries of URLs: these may be credentials.
func request(ctx context.Context, client *http.Client, method, of string, header map[string]string) (*http.Response, error) {
	made, err := http.NewRequestWithContext(ctx, method, of, nil)
	if err != nil {
		return nil, fmt.Errorf("%s is no URL", shown(of))
	}
	// Compressed answers have another size and another ETag.
	made.Header.Set("Accept-Encoding", "identity")
	for key, value := range header {
		if value != "" {
			made.Header.Set(key, value)
		}
	}
	response, err := client.Do(made)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, shown(of), withoutURL(err))
	}
	return response, nil
}

// withoutURL returns the cause of an error of net/http, which begins with the URL.
func withoutURL(err error) error {
	if with := new(url.Error); errors.As(err, &with) {
		return with.Err
	}
	return err
}

// shown returns a URL without what may be credentials.
func shown(of string) string {
	parsed, err := url.Parse(of)
	if err != nil {
		return "the URL"
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
}

// denied returns the error of an answer that is not the file.
func denied(of string, response *http.Response) error {
	advice := "correct the URL"
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		advice = "correct the URL, or the credentials in the Secret that secretRef names"
	case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests:
		advice = "the server fails; it is tried again"
	}
	return fmt.Errorf("%s: %d %s: %s", shown(of), response.StatusCode, http.StatusText(response.StatusCode), advice)
}

func checkRedirect(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maximumRedirects:
		return fmt.Errorf("it redirects more than %d times: use the URL at which they end", maximumRedirects)
	case to.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https":
		return fmt.Errorf("it redirects from HTTPS to %s without: use a URL that does not", to.URL.Host)
	}
	return nil
}

// authenticated adds credentials to requests to one host, over TLS only. The client of net/http would send them to its subdomains as well.
type authenticated struct {
	next http.RoundTripper
	host string
	with outbound.Credentials
}

func (a *authenticated) RoundTrip(request *http.Request) (*http.Response, error) {
	if (a.with.Username != "" || a.with.Password != "") && request.URL.Scheme == "https" && request.URL.Host == a.host {
		request = request.Clone(request.Context())
		request.SetBasicAuth(a.with.Username, a.with.Password)
	}
	return a.next.RoundTrip(request)
}
