package defaulting

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

// Problem is an error response as described by RFC 9457, with a list of causes.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Causes are the fields at fault. With status 422 they are user-specified.
	Causes []Cause `json:"causes,omitempty"`
	// RetryAfter is the delay before a retry, or 0 for no retry. It is sent as a header.
	RetryAfter time.Duration `json:"-"`
}

// Cause is a field at fault.
type Cause struct {
	Path   string `json:"path"`
	Value  string `json:"value,omitempty"`
	Detail string `json:"detail"`
}

// Error returns the status and every cause.
func (p *Problem) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s", p.Status, p.Title)
	if p.Detail != "" {
		text.WriteString(": " + p.Detail)
	}
	for _, cause := range p.Causes {
		fmt.Fprintf(&text, "; %s: %s", cause.Path, cause.Detail)
	}
	return text.String()
}

// Malformed returns 400: the request cannot be decoded.
func Malformed(format string, arguments ...any) *Problem {
	return problem(http.StatusBadRequest, format, arguments...)
}

// Invalid returns 422: the VirtualMachine cannot be defined as specified.
func Invalid(causes []Cause) *Problem {
	p := problem(http.StatusUnprocessableEntity, "the VirtualMachine cannot be defined as specified")
	p.Causes = causes
	return p
}

// Busy returns 429: the queue is full.
func Busy(retryAfter time.Duration) *Problem {
	p := problem(http.StatusTooManyRequests, "too many requests wait for libvirt")
	p.RetryAfter = retryAfter
	return p
}

// Unavailable returns 503: libvirt is not available. The request is not the cause unless the
// detail states so.
func Unavailable(format string, arguments ...any) *Problem {
	return problem(http.StatusServiceUnavailable, format, arguments...)
}

// Late returns 504: libvirt did not answer in time.
func Late(format string, arguments ...any) *Problem {
	return problem(http.StatusGatewayTimeout, format, arguments...)
}

// NewProblem returns a Problem with another status.
func NewProblem(status int, format string, arguments ...any) *Problem {
	return problem(status, format, arguments...)
}

func problem(status int, format string, arguments ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, arguments...)}
}
