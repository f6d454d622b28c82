package serving

import (
	"net/http"
	"time"
)

const (
	// defaultTimeout is what the API server takes when a webhook configuration says nothing. It always
	// sends its timeout, so this is for calls that come from elsewhere.
	defaultTimeout = 10 * time.Second
	// longestTimeout is the longest that admissionregistration.k8s.io/v1 lets a configuration ask for.
	longestTimeout = 30 * time.Second
	// largestMargin is what is kept back of a long timeout for the answer's way home.
	largestMargin = 500 * time.Millisecond
)

// budget returns how long the handler of a request may take: the timeout that the API server put in the
// query, less a tenth of it or half a second, whichever is less. A handler that knows its deadline can refuse with a
// reason; one that overruns it leaves the user with nothing but "context deadline exceeded".
func budget(request *http.Request) time.Duration {
	timeout, err := time.ParseDuration(request.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		timeout = defaultTimeout
	}
	timeout = min(timeout, longestTimeout)
	return timeout - min(timeout/10, largestMargin)
}
