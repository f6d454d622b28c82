package defaults

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/internal/guestdefaults"
)

// Values of the second label of stencil_defaulting_requests_total.
const (
	resultFilled    = "filled"
	resultUnchanged = "unchanged"
	// resultWithheld is an update in a governed namespace for which the defaults would change more than the user did.
	resultWithheld    = "withheld"
	resultSkipped     = "skipped"
	resultRejected    = "refused"
	resultUnavailable = "unavailable"
)

// Metrics are the metrics of the defaults webhook and of an Observer.
type Metrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
	up       prometheus.Gauge
	differs  prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_defaulting_requests_total",
			Help: "Requests for the defaults of VirtualMachines, by operation and outcome: filled, unchanged, withheld (in a governed namespace), skipped (by annotation), refused, or unavailable if the defaulter did not respond.",
		}, []string{"operation", "outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "stencil_defaulting_ask_seconds",
			Help:    "Duration of requests to the defaulter, in seconds, failed ones included. Answers from the cache are not counted.",
			Buckets: []float64{.00025, .0005, .001, .002, .004, .008, .016, .032, .064, .125, .25, .5, 1, 1.5, 2},
		}),
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stencil_defaulting_up",
			Help: "1 if the last defaulter health check succeeded.",
		}),
		differs: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stencil_defaulting_kubevirt_differs",
			Help: "1 if the cluster runs a minor version of KubeVirt that the defaulter does not reproduce, so that neither machine types nor addresses are written, or another one than its libvirt is from, so that machine types are not.",
		}),
	}
	for _, collector := range []prometheus.Collector{m.requests, m.duration, m.up, m.differs} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of defaults: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) count(request admission.Request, result string) {
	if m != nil {
		m.requests.WithLabelValues(string(request.Operation), result).Inc()
	}
}

// Timed returns a Defaulter that records the duration of each call.
func (m *Metrics) Timed(d guestdefaults.Defaulter, clock clock.PassiveClock) guestdefaults.Defaulter {
	return &timed{Defaulter: d, duration: m.duration, clock: clock}
}

type timed struct {
	guestdefaults.Defaulter
	duration prometheus.Observer
	clock    clock.PassiveClock
}

// Defaults implements guestdefaults.Defaulter.
func (t *timed) Defaults(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	begin := t.clock.Now()
	defer func() { t.duration.Observe(t.clock.Since(begin).Seconds()) }()
	return t.Defaulter.Defaults(ctx, request)
}
