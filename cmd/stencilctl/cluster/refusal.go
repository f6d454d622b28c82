package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// Failed returns the error of a command when its request failed or was rejected. Each cause is
// on its own line.
func Failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	refusal, refused := RefusalOf(err)
	if !refused {
		return cli.Cluster(fmt.Errorf("%s: %w", doing, err))
	}
	text := doing + ": " + refusal.Message
	for _, cause := range refusal.Causes {
		text += "\n  " + cause.String()
	}
	return cli.Cluster(&rephrasedError{text: text, err: err})
}

// rephrasedError is an error with another text.
type rephrasedError struct {
	text string
	err  error
}

func (t *rephrasedError) Error() string { return t.text }

func (t *rephrasedError) Unwrap() error { return t.err }

// Refusal is the API server's response to a request that it rejects.
type Refusal struct {
	Code    int32
	Reason  metav1.StatusReason
	Message string
	// Causes are the causes with their fields. If there are any, Message does not repeat them.
	Causes []Cause
}

// Cause is one cause of a Refusal.
type Cause struct {
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// String returns the cause on one line.
func (c Cause) String() string {
	if c.Field == "" {
		return c.Message
	}
	return c.Field + ": " + c.Message
}

// RefusalOf returns the rejection in an error of a Client. There is none when the cluster was
// not reachable.
func RefusalOf(err error) (Refusal, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Refusal{}, false
	}
	response := status.Status()
	r := Refusal{Code: response.Code, Reason: response.Reason, Message: response.Message}
	if response.Details == nil {
		return r, true
	}
	for _, cause := range response.Details.Causes {
		switch cause.Type {
		case metav1.CauseTypeUnexpectedServerResponse:
			continue // it repeats the message
		default:
			r.Causes = append(r.Causes, Cause{Field: strings.TrimPrefix(cause.Field, "<nil>"), Message: cause.Message})
		}
	}
	if len(r.Causes) > 0 {
		r.Message = withoutCauses(r.Message, r.Causes)
	}
	return r, true
}

// withoutCauses removes the causes from a message, as the API server and Stencil's webhooks
// format it: the object "is invalid: [CAUSE, CAUSE]; HINT", or with a line for each decision.
func withoutCauses(message string, causes []Cause) string {
	if head, list, found := strings.Cut(message, "\n- "); found {
		var left []string
		for line := range strings.SplitSeq(list, "\n- ") {
			if !slices.ContainsFunc(causes, func(c Cause) bool { return strings.Replace(line, " at "+c.Field, "", 1) == c.Message }) {
				left = append(left, withoutCauses(line, causes))
			}
		}
		return strings.TrimRight(strings.TrimRight(head, " ")+" "+strings.Join(left, "; "), " :")
	}
	first, last := len(message), len(message)
	for _, cause := range causes {
		texts := []string{cause.String(), cause.Message}
		if _, body, found := strings.Cut(cause.Message, ": "); found {
			// The message may omit the type of the cause, such as Forbidden.
			texts = append(texts, Cause{Field: cause.Field, Message: body}.String())
		}
		for _, text := range texts {
			at := strings.Index(message, text)
			if at < 0 {
				continue
			}
			if first == len(message) {
				last = 0
			}
			first, last = min(first, at), max(last, at+len(text))
			break
		}
	}
	head := strings.TrimRight(message[:first], " [:")
	if hint := strings.TrimLeft(message[last:], " ],;"); hint != "" {
		return head + "; " + hint
	}
	return head
}
