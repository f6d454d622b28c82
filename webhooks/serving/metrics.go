package serving

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Values of the last label of the histogram of admission requests.
const (
	// resultAllowed is an allowed request, changed or not.
	resultAllowed = "allowed"
	// resultDenied is a denial caused by the request.
	resultDenied = "denied"
	// resultErrored is a denial caused by Stencil or the cluster.
	resultErrored = "errored"
)

// operationUnknown is the operation of a request that was denied before its operation could be read.
const operationUnknown = "UNKNOWN"

// metrics are the metrics of all webhooks of one server.
type metrics struct {
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	panics   *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stencil_webhook_duration_seconds",
			Help: "Time from the arrival of an admission request to its answer, by webhook, operation and outcome (allowed, denied, errored).",
			// Rendering takes well under a millisecond; longer calls wait for a permission check.
			Buckets: []float64{.00025, .0005, .001, .002, .004, .008, .016, .032, .064, .125, .25, .5, 1, 2.5, 5, 10},
		}, []string{"webhook", "operation", "outcome"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_webhook_in_flight_requests",
			Help: "Admission requests that are being answered, by webhook.",
		}, []string{"webhook"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_webhook_panics_total",
			Help: "Admission requests that were denied because their handler panicked, by webhook. Any is a defect.",
		}, []string{"webhook"}),
	}
	for _, collector := range []prometheus.Collector{m.duration, m.inFlight, m.panics} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observation holds the labels under which a request is recorded.
type observation struct {
	operation string
	result    string
}

func (m *metrics) observe(webhook string, o observation, duration time.Duration) {
	m.duration.WithLabelValues(webhook, o.operation, o.result).Observe(duration.Seconds())
}

// operationLabel limits the label to the defined operations, whatever the request contains.
func operationLabel(operation admissionv1.Operation) string {
	switch operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect:
		return string(operation)
	default:
		return operationUnknown
	}
}

// resultOf returns the label value for a response.
func resultOf(response admission.Response) string {
	switch {
	case response.Allowed:
		return resultAllowed
	case response.Result != nil && response.Result.Code >= http.StatusInternalServerError:
		return resultErrored
	default:
		return resultDenied
	}
}
