package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/vmstencil/stencil/internal/outbound"
	"github.com/vmstencil/stencil/internal/resume"
	"github.com/vmstencil/stencil/internal/s3"
	"github.com/vmstencil/stencil/transfer"
)

const maximumRedirects = 10

// Options of a file.
type Options struct {
	URL string
	// Username and Password, or Token, are sent to the host of the URL.
	Username, Password, Token string
	// Object is the object in a bucket that the URL is. Requests are signed with its keys then, and redirects are not followed.
	Object *s3.Object
	// Authorities are certificates in PEM that are trusted besides those of the system.
	Authorities [][]byte
	// Networks are the networks that may be connected to, and those of the cluster.
	Networks outbound.Networks
	// Stall is how long the server may send nothing.
	Stall time.Duration
	// Pace is how slowly the server may send.
	Pace resume.Pace
	// Wait waits before another attempt, see resume.Content.
	Wait func(ctx context.Context, attempt int) error
}

// File is a file of a server.
type File struct {
	options Options
	address *url.URL
	client  *http.Client
	// size is -1 if it is not known.
	size   int64
	ranges bool
	// etag is a strong one. modified is used where there is none.
	etag, modified string
	// meter measures what is read by ranges.
	meter *resume.Meter
}

// Open requests the first byte of a file, to read its size and whether the server supports ranges.
func Open(ctx context.Context, options Options) (*File, error) {
	address, err := url.Parse(options.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, failure(transfer.ReasonInvalidTask, false, "the URL of the source is none of http or https")
	}
	transport, err := outbound.Transport(options.Networks, outbound.Transfers, options.Authorities)
	if err != nil {
		return nil, failure(transfer.ReasonInvalidTask, false, "the certificates of the source: %v", err)
	}
	if options.Wait == nil {
		options.Wait = resume.Wait
	}
	f := &File{options: options, address: address, client: &http.Client{Transport: transport, CheckRedirect: checkRedirect}, size: -1, meter: resume.NewMeter(options.Pace)}
	if options.Object != nil {
		f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	for attempt := 1; ; attempt++ {
		err := f.probe(ctx)
		if err == nil || !temporary(err) || attempt > resume.Attempts {
			return f, err
		}
		if err := options.Wait(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// checkRedirect denies redirects to other schemes and from HTTPS to HTTP, and removes credentials for another host. Go would send them to subdomains.
func checkRedirect(request *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) >= maximumRedirects:
		return failure(transfer.ReasonSourceDenied, false, "%s redirects more than %d times", shown(first), maximumRedirects)
	case request.URL.Scheme != "https" && request.URL.Scheme != "http":
		return failure(transfer.ReasonSourceDenied, false, "%s redirects to an address of the scheme %.20q", shown(first), request.URL.Scheme)
	case request.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
		return failure(transfer.ReasonSourceDenied, false, "%s redirects to %s, which has no TLS", shown(first), shown(request.URL))
	}
	request.Header.Del("Referer")
	if request.URL.Host != first.Host || request.URL.Scheme != first.Scheme {
		request.Header.Del("Authorization")
	}
	return nil
}

// Size is the number of bytes, and -1 if the server does not report it.
func (f *File) Size() int64 { return f.size }

// Ranges reports whether the file can be read by ranges.
func (f *File) Ranges() bool { return f.ranges && f.size >= 0 }

// Revision identifies the content. It is empty if the server reports nothing that does.
func (f *File) Revision() string {
	if f.etag != "" {
		return f.etag
	}
	return f.modified
}

// Close closes connections that are not in use.
func (f *File) Close() error {
	f.client.CloseIdleConnections()
	return nil
}

// probe requests the first byte.
func (f *File) probe(ctx context.Context) error {
	if f.options.Stall > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.options.Stall, failure(transfer.ReasonUnreachableSource, true, "%s: the server does not answer", shown(f.address)))
		defer cancel()
	}
	response, err := f.get(ctx, 0, 0)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	f.etag, f.modified = validators(response)
	if response.StatusCode == http.StatusOK {
		f.size = response.ContentLength
		return nil
	}
	_, size, err := contentRange(response)
	if err != nil {
		return failure(transfer.ReasonUnreachableSource, false, "%s: %v", shown(f.address), err)
	}
	f.size, f.ranges = size, size >= 0
	return nil
}

// validators returns a strong ETag, and when the content was modified.
func validators(response *http.Response) (etag, modified string) {
	etag = response.Header.Get("ETag")
	if strings.HasPrefix(etag, "W/") || len(etag) > 1024 {
		etag = ""
	}
	if modified = response.Header.Get("Last-Modified"); len(modified) > 1024 {
		modified = ""
	}
	return etag, modified
}

// contentRange returns the first byte of an answer, and the size of the file, -1 if it is not known.
func contentRange(response *http.Response) (first, size int64, err error) {
	text := response.Header.Get("Content-Range")
	bounds, total, found := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	begin, _, both := strings.Cut(bounds, "-")
	if found && both {
		first, err = strconv.ParseInt(begin, 10, 64)
	}
	if !found || !both || err != nil {
		return 0, 0, fmt.Errorf("the server answers with the range %.80q", text)
	}
	if size, err = strconv.ParseInt(total, 10, 64); err != nil {
		size = -1
	}
	return first, size, nil
}

// get requests bytes from first to last; up to the end if last is negative.
func (f *File) get(ctx context.Context, first, last int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.options.URL, nil)
	if err != nil {
		return nil, failure(transfer.ReasonInvalidTask, false, "the URL of the source is none")
	}
	// A content that the server compresses has other offsets.
	request.Header.Set("Accept-Encoding", "identity")
	switch {
	case f.options.Token != "":
		request.Header.Set("Authorization", "Bearer "+f.options.Token)
	case f.options.Username != "" || f.options.Password != "":
		request.SetBasicAuth(f.options.Username, f.options.Password)
	}
	if last >= 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, last))
	} else if first > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", first))
	}
	if revision := f.Revision(); revision != "" && request.Header.Get("Range") != "" {
		request.Header.Set("If-Range", revision)
	}
	if f.options.Object != nil {
		if err := f.options.Object.Sign(ctx, request); err != nil {
			return nil, failure(transfer.ReasonInvalidTask, false, "signing the request for %s: %v", shown(f.address), err)
		}
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, f.explain(ctx, err)
	}
	if err := f.check(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// check checks the status and the revision of an answer.
func (f *File) check(response *http.Response) error {
	switch code := response.StatusCode; {
	case f.options.Object != nil && s3.Elsewhere(response):
		return failure(transfer.ReasonUnreachableSource, false, "%s: the server answers %s: the bucket may be in another region: set the region of the source, or use the URL https://s3.REGION.amazonaws.com/BUCKET/KEY", shown(f.address), status(response))
	case code == http.StatusRequestedRangeNotSatisfiable:
		return failure(transfer.ReasonNotAPackage, false, "%s: the file is empty, or became shorter", shown(f.address))
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return failure(transfer.ReasonSourceDenied, false, "%s: the server answers %s: check the credentials of the source", shown(f.address), status(response))
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= http.StatusInternalServerError:
		return failure(transfer.ReasonUnreachableSource, true, "%s: the server answers %s", shown(f.address), status(response))
	case code != http.StatusOK && code != http.StatusPartialContent:
		return failure(transfer.ReasonUnreachableSource, false, "%s: the server answers %s", shown(f.address), status(response))
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return failure(transfer.ReasonUnsupported, false, "%s: the server compresses the file (%.40q), though it was requested as it is", shown(f.address), encoding)
	}
	etag, modified := validators(response)
	if f.etag != "" && etag != "" && etag != f.etag || f.etag == "" && f.modified != "" && modified != "" && modified != f.modified {
		return f.changed()
	}
	size := response.ContentLength
	if response.StatusCode == http.StatusPartialContent {
		if _, total, err := contentRange(response); err == nil {
			size = total
		}
	}
	if f.size >= 0 && size >= 0 && size != f.size {
		return f.changed()
	}
	return nil
}

// status is a number and its text: not that of the server, which may contain anything.
func status(response *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)))
}

func (f *File) changed() error {
	return failure(transfer.ReasonSourceChanged, false, "%s: the file has changed while it was read; start again", shown(f.address))
}

// explain makes an error of the client one for users: without the query of the address.
func (f *File) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	at := f.address
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		if to, parsed := url.Parse(wrapped.URL); parsed == nil {
			at = to
		}
		err = wrapped.Err
	}
	if known := (*transfer.Failure)(nil); errors.As(err, &known) {
		return known
	}
	if errors.Is(err, outbound.ErrPrivate) {
		return failure(transfer.ReasonSourceDenied, false, "%s: %s", shown(at), private(err))
	}
	return failure(transfer.ReasonUnreachableSource, true, "%s: %v", shown(at), err)
}

// private returns the part of an error of a connection that names the address.
func private(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || errors.Is(inner, outbound.ErrPrivate) && inner.Error() == outbound.ErrPrivate.Error() {
			return err.Error()
		}
		err = inner
	}
}

// shown is an address without user and query.
func shown(address *url.URL) string {
	return (&url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path}).Redacted()
}

func failure(reason string, retry bool, format string, arguments ...any) *transfer.Failure {
	return &transfer.Failure{Reason: reason, Retry: retry, Message: fmt.Sprintf(format, arguments...)}
}

// temporary reports whether another attempt may succeed.
func temporary(err error) bool {
	var known *transfer.Failure
	return errors.As(err, &known) && known.Retry
}

// Stream returns a reader of the whole file. After a cut it continues where it ended; if the server does not support ranges it starts again, and compares what
// was read before.
func (f *File) Stream(ctx context.Context) io.ReadCloser {
	return &explained{f, resume.NewReader(ctx, resume.Content{
		Open: f.open, Temporary: temporary, Size: f.size, Stall: f.options.Stall, Pace: f.options.Pace, Wait: f.options.Wait,
	})}
}

func (f *File) open(ctx context.Context, offset int64) (io.ReadCloser, int64, error) {
	response, err := f.get(ctx, offset, -1)
	if err != nil {
		return nil, 0, err
	}
	if response.StatusCode == http.StatusOK {
		return &body{f, response.Body}, 0, nil
	}
	first, _, err := contentRange(response)
	if err != nil {
		_ = response.Body.Close()
		return nil, 0, failure(transfer.ReasonUnreachableSource, false, "%s: %v", shown(f.address), err)
	}
	return &body{f, response.Body}, first, nil
}

// body is an answer, whose errors are cuts.
type body struct {
	f *File
	io.ReadCloser
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = failure(transfer.ReasonUnreachableSource, true, "%s: the connection was cut: %v", shown(b.f.address), err)
	}
	return n, err
}

// explained makes errors of the reader those for users.
type explained struct {
	f *File
	*resume.Reader
}

func (e *explained) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	var known *transfer.Failure
	switch {
	case err == nil || errors.Is(err, io.EOF) || errors.As(err, &known) || errors.Is(err, context.Canceled):
		return n, err
	case errors.Is(err, resume.ErrChanged):
		return n, e.f.changed()
	}
	return n, failure(transfer.ReasonUnreachableSource, !errors.Is(err, resume.ErrSlow), "%s: %v", shown(e.f.address), err)
}
