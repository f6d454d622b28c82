package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Webhook is one admission webhook.
type Webhook struct {
	// Name is the webhook's value of the metrics' label "webhook", and its name in logs.
	Name string
	// Path is where it is served, with a leading slash.
	Path string
	// Handler answers. Its context carries the deadline of the request and a logger.
	Handler admission.Handler
}

// handler is the http.Handler of one webhook.
type handler struct {
	webhook  string
	review   http.Handler
	metrics  *metrics
	clock    clock.PassiveClock
	logger   logr.Logger
	draining func() bool
}

func newHandler(webhook Webhook, metrics *metrics, clock clock.PassiveClock, logger logr.Logger, draining func() bool) (*handler, error) {
	logger = logger.WithValues("webhook", webhook.Name)
	review, err := admission.StandaloneWebhook(&admission.Webhook{
		Handler: &guard{webhook: webhook.Name, next: webhook.Handler, metrics: metrics},
		// The guard recovers; controller-runtime would tell the value of the panic to the user.
		RecoverPanic:   ptr.To(false),
		LogConstructor: requestLogger,
	}, admission.StandaloneOptions{Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("setting up webhook %s: %w", webhook.Name, err)
	}
	// A gauge that is missing until the first request makes alerts on it guess.
	metrics.inFlight.WithLabelValues(webhook.Name)
	metrics.panics.WithLabelValues(webhook.Name)
	return &handler{
		webhook:  webhook.Name,
		review:   review,
		metrics:  metrics,
		clock:    clock,
		logger:   logger,
		draining: draining,
	}, nil
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
	seen := &observation{operation: operationUnknown, outcome: outcomeErrored}
	defer func() { h.metrics.observe(h.webhook, *seen, h.clock.Since(arrival)) }()

	body, err := readBody(request, maximumBody)
	if errors.Is(err, errBodyTooLarge) {
		seen.outcome = outcomeDenied
		// A client that is still sending may take a connection that is closed on it for a failed call
		// and never read the refusal.
		_, _ = io.CopyN(io.Discard, request.Body, maximumDiscarded)
		h.refuseTooLarge(writer, body)
		return
	}
	if err != nil {
		h.logger.V(1).Info("reading the body of an admission request failed", "cause", err.Error())
		http.Error(writer, "reading the request body failed", http.StatusBadRequest)
		return
	}

	ctx, cancel := context.WithTimeout(context.WithValue(request.Context(), observationKey{}, seen), budget(request))
	defer cancel()
	request = request.WithContext(ctx)
	request.Body = io.NopCloser(bytes.NewReader(body))
	writer.Header().Set("Content-Type", "application/json")
	h.review.ServeHTTP(writer, request)
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
	writer.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(writer).Encode(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: &response.AdmissionResponse,
	})
	if err != nil {
		h.logger.V(1).Info("writing the answer to an admission request failed", "requestID", uid, "cause", err.Error())
	}
}
