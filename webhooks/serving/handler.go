package serving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Webhook is one admission webhook.
type Webhook struct {
	// Name is the webhook's value of the metrics' label "webhook", and its name in logs.
	Name string
	// Path is where it is served, with a leading slash.
	Path string
	// Handler answers. Its context carries the deadline of the request.
	Handler admission.Handler
}

// handler is the http.Handler of one webhook.
type handler struct {
	webhook  string
	guard    *guard
	metrics  *metrics
	clock    clock.PassiveClock
	logger   logr.Logger
	draining func() bool
}

func newHandler(webhook Webhook, metrics *metrics, clock clock.PassiveClock, logger logr.Logger, draining func() bool) *handler {
	logger = logger.WithValues("webhook", webhook.Name)
	// A gauge that is missing until the first request makes alerts on it guess.
	metrics.inFlight.WithLabelValues(webhook.Name)
	metrics.panics.WithLabelValues(webhook.Name)
	return &handler{
		webhook:  webhook.Name,
		guard:    &guard{webhook: webhook.Name, next: webhook.Handler, metrics: metrics, logger: logger},
		metrics:  metrics,
		clock:    clock,
		logger:   logger,
		draining: draining,
	}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	arrival := h.clock.Now()
	inFlight := h.metrics.inFlight.WithLabelValues(h.webhook)
	inFlight.Inc()
	defer inFlight.Dec()

	if h.draining() {
		writer.Header().Set("Connection", "close")
	}
	if request.Method != http.MethodPost {
		writer.Header().Set("Allow", http.MethodPost)
		http.Error(writer, "an admission webhook takes POST only", http.StatusMethodNotAllowed)
		return
	}

	// What is not known at the end went wrong before the handler was reached.
	seen := observation{operation: operationUnknown, outcome: outcomeErrored}
	defer func() { h.metrics.observe(h.webhook, seen, h.clock.Since(arrival)) }()

	buffer := takeBuffer()
	defer returnBuffer(buffer)
	err := readBody(buffer, request, maximumBody)
	if errors.Is(err, errBodyTooLarge) {
		seen.outcome = outcomeDenied
		// A client that is still sending may take a connection that is closed on it for a failed call
		// and never read the refusal.
		_, _ = io.CopyN(io.Discard, request.Body, maximumDiscarded)
		h.refuseTooLarge(writer, buffer.Bytes())
		return
	}
	if err != nil {
		h.logger.V(1).Info("reading the body of an admission request failed", "cause", err.Error())
		http.Error(writer, "reading the request body failed", http.StatusBadRequest)
		return
	}
	review, err := readReview(buffer.Bytes())
	if err != nil {
		h.logger.V(1).Info("an admission request cannot be decoded", "cause", err.Error())
		h.write(writer, reviewUID(buffer.Bytes()), refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()))
		return
	}

	ctx, cancel := context.WithTimeout(request.Context(), budget(request))
	defer cancel()
	response := h.guard.handle(ctx, admission.Request{AdmissionRequest: *review})
	seen = observation{operation: operationLabel(review.Operation), outcome: outcomeOf(response)}
	h.send(writer, complete(response, review))
}

// refuseTooLarge answers a request whose body exceeds the limit. The answer is a review where possible: an
// HTTP error would count as a failure of the webhook, which failurePolicy Ignore lets pass.
func (h *handler) refuseTooLarge(writer http.ResponseWriter, truncated []byte) {
	message := fmt.Sprintf("the admission request is larger than the %d MiB that webhook %s takes: make the object smaller", maximumBody>>20, h.webhook)
	uid := reviewUID(truncated)
	h.logger.Info("refused an admission request that is too large", "requestID", uid, "limit", maximumBody)
	if uid == "" {
		http.Error(writer, message, http.StatusRequestEntityTooLarge)
		return
	}
	h.write(writer, uid, refuse(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, message))
}

func (h *handler) write(writer http.ResponseWriter, uid types.UID, response admission.Response) {
	response.UID = uid
	h.send(writer, &response.AdmissionResponse)
}

func (h *handler) send(writer http.ResponseWriter, response *admissionv1.AdmissionResponse) {
	buffer := takeBuffer()
	defer returnBuffer(buffer)
	content, err := appendReview(buffer.AvailableBuffer(), response)
	if err != nil {
		h.logger.Error(err, "encoding the answer to an admission request failed", "requestID", response.UID)
		http.Error(writer, "encoding the answer failed", http.StatusInternalServerError)
		return
	}
	_, _ = buffer.Write(content) // so that the pool keeps what has grown
	writer.Header().Set("Content-Type", "application/json")
	// Without it an answer of more than 2 KiB is sent in chunks.
	writer.Header().Set("Content-Length", strconv.Itoa(buffer.Len()))
	if _, err := writer.Write(buffer.Bytes()); err != nil {
		h.logger.V(1).Info("writing the answer to an admission request failed", "requestID", response.UID, "cause", err.Error())
	}
}
