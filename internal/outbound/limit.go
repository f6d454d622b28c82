package outbound

import (
	"io"
	"net/http"
	"sync/atomic"
)

// Limit returns a transport that limits all answers together to a number of bytes, so that a server cannot exhaust the memory, with pages that never end
// either; large is returned beyond it. If plain is not nil, it is returned for requests without TLS, which could contain credentials.
func Limit(next http.RoundTripper, bytes int64, large, plain error) http.RoundTripper {
	l := &limited{next: next, large: large, plain: plain}
	l.left.Store(bytes)
	return l
}

type limited struct {
	next         http.RoundTripper
	large, plain error
	// left is the number of bytes that may still be read.
	left atomic.Int64
}

func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if l.plain != nil && request.URL.Scheme != "https" {
		return nil, l.plain
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
	if b.limit.left.Add(-int64(n)) < 0 {
		return 0, b.limit.large
	}
	return n, err
}
