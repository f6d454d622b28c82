package serving

import (
	"net/http"
	"time"
)

const (
	// defaultTimeout is the API server's default for a webhook configuration without a timeout. The API server always
	// sends its timeout, so this is for calls from other clients.
	defaultTimeout = 10 * time.Second
	// longestTimeout is the longest timeout that admissionregistration.k8s.io/v1 permits.
	longestTimeout = 30 * time.Second
	// largestMargin is the longest part of a timeout that is reserved for returning the response.
	largestMargin = 500 * time.Millisecond
)

// budget returns how long the handler of a request may take: the timeout in the query, which the API server sets,
// less a tenth of it or half a second, whichever is less. A handler with a deadline can deny with a reason. If it
// exceeds the timeout, the user receives only "context deadline exceeded".
func budget(request *http.Request) time.Duration {
	timeout, err := time.ParseDuration(request.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		timeout = defaultTimeout
	}
	timeout = min(timeout, longestTimeout)
	return timeout - min(timeout/10, largestMargin)
}
