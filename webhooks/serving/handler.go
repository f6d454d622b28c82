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
	// Name is the value of the metrics label "webhook", and the name in logs.
	Name string
	// Path is the URL path of the webhook, with a leading slash.
	Path string
	// Handler handles the requests. Its context has the deadline of the request.
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
	// Initialized here, because alerts cannot distinguish a missing metric from 0.
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

	// These values apply to a request that fails before the handler is called.
	observed := observation{operation: operationUnknown, result: resultErrored}
	defer func() { h.metrics.observe(h.webhook, observed, h.clock.Since(arrival)) }()

	buffer := takeBuffer()
	defer returnBuffer(buffer)
	err := readBody(buffer, request, maximumBody)
	if errors.Is(err, errBodyTooLarge) {
		observed.result = resultDenied
		// If the connection closes while the client is still sending, the client may report a failed call and never read
		// the denial.
		_, _ = io.CopyN(io.Discard, request.Body, maximumDiscarded)
		h.denyTooLarge(writer, buffer.Bytes())
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
		h.write(writer, reviewUID(buffer.Bytes()), denial(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()))
		return
	}

	ctx, cancel := context.WithTimeout(request.Context(), budget(request))
	defer cancel()
	response := h.guard.handle(ctx, admission.Request{AdmissionRequest: *review})
	observed = observation{operation: operationLabel(review.Operation), result: resultOf(response)}
	h.send(writer, complete(response, review))
}

// denyTooLarge denies a request with a body larger than the limit. The response is a review if the UID can be read:
// an HTTP error would count as a failure of the webhook, which failurePolicy Ignore allows.
func (h *handler) denyTooLarge(writer http.ResponseWriter, truncated []byte) {
	message := fmt.Sprintf("the admission request is larger than the %d MiB that webhook %s takes: make the object smaller", maximumBody>>20, h.webhook)
	uid := reviewUID(truncated)
	h.logger.Info("rejected an admission request that is too large", "requestID", uid, "limit", maximumBody)
	if uid == "" {
		http.Error(writer, message, http.StatusRequestEntityTooLarge)
		return
	}
	h.write(writer, uid, denial(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, message))
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
	_, _ = buffer.Write(content) // returns the grown buffer to the pool
	writer.Header().Set("Content-Type", "application/json")
	// Without this header a response of more than 2 KiB is sent in chunks.
	writer.Header().Set("Content-Length", strconv.Itoa(buffer.Len()))
	if _, err := writer.Write(buffer.Bytes()); err != nil {
		h.logger.V(1).Info("writing the answer to an admission request failed", "requestID", response.UID, "cause", err.Error())
	}
}
