package defaulting

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

// Problem is a refusal, as RFC 9457 describes it, with a list of causes.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Causes name the fields at fault. Those of status 422 are the user's.
	Causes []Cause `json:"causes,omitempty"`
	// RetryAfter is when to ask again, 0 for not at all. It travels as a header.
	RetryAfter time.Duration `json:"-"`
}

// Cause is a field at fault.
type Cause struct {
	Path   string `json:"path"`
	Value  string `json:"value,omitempty"`
	Detail string `json:"detail"`
}

// Error names the status, and every cause.
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

// Malformed is 400: the request cannot be read.
func Malformed(format string, arguments ...any) *Problem {
	return problem(http.StatusBadRequest, format, arguments...)
}

// Invalid is 422: the VirtualMachine cannot be what it says.
func Invalid(causes []Cause) *Problem {
	p := problem(http.StatusUnprocessableEntity, "the VirtualMachine cannot be defined as it is written")
	p.Causes = causes
	return p
}

// Busy is 429: there is no room in the queue.
func Busy(retryAfter time.Duration) *Problem {
	p := problem(http.StatusTooManyRequests, "too many requests wait for libvirt")
	p.RetryAfter = retryAfter
	return p
}

// Unavailable is 503: libvirt cannot be asked, through no fault of the request
// unless the detail says so.
func Unavailable(format string, arguments ...any) *Problem {
	return problem(http.StatusServiceUnavailable, format, arguments...)
}

// Late is 504: libvirt did not answer in time.
func Late(format string, arguments ...any) *Problem {
	return problem(http.StatusGatewayTimeout, format, arguments...)
}

// NewProblem is a Problem of another status.
func NewProblem(status int, format string, arguments ...any) *Problem {
	return problem(status, format, arguments...)
}

func problem(status int, format string, arguments ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, arguments...)}
}
