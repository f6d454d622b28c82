package traffic

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Class is the result of a write.
type Class string

const (
	// Written is a write that the API server stored.
	Written Class = "written"
	// Denied is a write that admission denied: a webhook or a policy, see Result.By.
	Denied Class = "denied"
	// Rejected is a write that the API server answered and did not store for another reason, such as RBAC or a schema.
	Rejected Class = "rejected"
	// Unavailable is a write that no API server answered, or that it could not process: no connection, a timeout, no etcd. It is
	// not a decision about the write.
	Unavailable Class = "unavailable"
)

// Result is a classified answer.
type Result struct {
	Class Class
	// By is the name of the webhook or of the policy that denied the write.
	By string
	// Broken is set if the webhook or the policy could not be evaluated, and its failure policy denied the write.
	Broken bool
	// Reason is a short form of Message: that of the metav1.Status, or what kind of network error it is.
	Reason string
	// Message is the whole text of the error.
	Message string
}

var (
	// Formats of k8s.io/apiserver: pkg/admission/plugin/webhook/errors and pkg/admission/plugin/webhook.
	webhookMessage = regexp.MustCompile(`(admission webhook|failed calling webhook) "([^"]+)"`)
	// Formats of pkg/admission/plugin/policy/{validating,mutating}.
	policyMessage = regexp.MustCompile(`(?:AdmissionPolicy|policy) '([^']+)'(?: with binding '[^']*')? denied request: (.*)`)
	unsyncedRole  = regexp.MustCompile(`RBAC: .*role\.rbac\.authorization\.k8s\.io .* not found`)
	// A policy without readable parameters denies by its failure policy, with a message that resembles a decision.
	brokenPolicy = regexp.MustCompile(`^(failed to configure (policy|binding)|expression '.*' resulted in error|no params found)`)
)

// Classify reads the answer to a write. It depends on nothing but the error.
func Classify(err error) Result {
	if err == nil {
		return Result{Class: Written}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Result{Class: Unavailable, Reason: networkReason(err), Message: err.Error()}
	}
	answer := status.Status()
	result := Result{Class: Rejected, Reason: string(answer.Reason), Message: answer.Message}
	if result.Reason == "" {
		result.Reason = http.StatusText(int(answer.Code))
	}
	// Admission before codes: a webhook that is not reached is a code of 500, and a webhook chooses the code of its own denials.
	if match := policyMessage.FindStringSubmatch(answer.Message); match != nil && !precedes(webhookMessage, policyMessage, answer.Message) {
		result.Class, result.By, result.Broken = Denied, match[1], brokenPolicy.MatchString(match[2])
		return result
	}
	if match := webhookMessage.FindStringSubmatch(answer.Message); match != nil {
		result.Class, result.By, result.Broken = Denied, match[2], match[1] == "failed calling webhook"
		return result
	}
	if notServing(answer) {
		result.Class = Unavailable
	}
	return result
}

// precedes reports whether one expression matches before another: the first is that of the answer, any other is a quotation.
func precedes(one, another *regexp.Regexp, text string) bool {
	first, second := one.FindStringIndex(text), another.FindStringIndex(text)
	return first != nil && (second == nil || first[0] < second[0])
}

// notServing reports whether a response means that the API server cannot process requests, at all or of this kind.
func notServing(answer metav1.Status) bool {
	switch {
	case answer.Code >= http.StatusInternalServerError, answer.Code == http.StatusTooManyRequests:
		return true
	// An API server that has just started answers so until its admission plugins, roles and definitions are synced.
	case answer.Reason == metav1.StatusReasonForbidden && strings.HasSuffix(answer.Message, "not yet ready to handle request"):
		return true
	// Bindings are synced before the roles that they name.
	case answer.Reason == metav1.StatusReasonForbidden && unsyncedRole.MatchString(answer.Message):
		return true
	case answer.Reason == metav1.StatusReasonNotFound && strings.HasPrefix(answer.Message, "the server could not find the requested resource"):
		return true
	}
	return false
}

// networkReason names an error of the connection.
func networkReason(err error) string {
	var timeout net.Error
	text := err.Error()
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "Timeout"
	case strings.Contains(text, "connection refused"):
		return "ConnectionRefused"
	case strings.Contains(text, "connection reset"), strings.Contains(text, "broken pipe"), strings.Contains(text, "EOF"),
		strings.Contains(text, "http2:"), strings.Contains(text, "use of closed network connection"):
		return "ConnectionLost"
	}
	return "NoAnswer"
}
