package capture

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// Results of captures.
const (
	resultReady      = "ready"
	resultIncomplete = "incomplete"
	resultFailed     = "failed"
)

// metrics count captures that have ended.
type metrics struct {
	captures *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		captures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_captures_total",
			Help: "VirtualMachineTemplateRequests that have ended: with a template (ready), with one that refers to objects that its VMs cannot use (incomplete), or without one (failed), and the reason of their condition Ready.",
		}, []string{"outcome", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "stencil_capture_duration_seconds",
			Help:    "Time from the creation of a VirtualMachineTemplateRequest to its end, in seconds, by outcome.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600},
		}, []string{"outcome"}),
	}
	for _, collector := range []prometheus.Collector{m.captures, m.duration} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of captures: %w", err)
		}
	}
	// Initialize the series, so that alerts work before the first capture ends.
	for _, result := range []string{resultReady, resultIncomplete, resultFailed} {
		m.duration.WithLabelValues(result)
	}
	m.captures.WithLabelValues(resultReady, v1beta1.ReasonReconciled)
	return m, nil
}

func (m *metrics) ended(result, reason string, took time.Duration) {
	m.captures.WithLabelValues(result, reason).Inc()
	m.duration.WithLabelValues(result).Observe(took.Seconds())
}
