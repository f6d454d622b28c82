package transfer

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count transfers that have ended.
type metrics struct {
	transfers *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	bytes     *prometheus.CounterVec
}

// Values of labels.
const (
	directionImport = "import"
	directionExport = "export"
	// directionCapture has no metrics of its own: examinations count as transfers in progress.
	directionCapture = "capture"
	resultReady      = "ready"
	resultFailed     = "failed"
)

// newMetrics registers the metrics. Counts returns how many transfers are in progress, and how many wait for them.
func newMetrics(registerer prometheus.Registerer, counts func() (held, waiting int)) (*metrics, error) {
	m := &metrics{
		transfers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_transfers_total",
			Help: "Imports and exports of templates that have ended, successful (ready) or not (failed), with the reason of their condition Ready.",
		}, []string{"direction", "outcome", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "stencil_transfer_duration_seconds",
			Help:    "Time from the creation of an import or export to its end, in seconds. For an export that is when it can be downloaded.",
			Buckets: []float64{5, 15, 60, 300, 900, 1800, 3600, 7200, 21600, 86400},
		}, []string{"direction", "outcome"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_transfer_bytes_total",
			Help: "Bytes of the packages of successful imports and exports.",
		}, []string{"direction"}),
	}
	inProgress := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stencil_transfers_in_progress", Help: "Imports and exports of templates, and examinations of captured disks, that are in progress.",
	}, func() float64 { held, _ := counts(); return float64(held) })
	queued := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stencil_transfers_queued", Help: "Imports and exports of templates, and examinations of captured disks, that begin when others have ended.",
	}, func() float64 { _, waiting := counts(); return float64(waiting) })
	for _, collector := range []prometheus.Collector{m.transfers, m.duration, m.bytes, inProgress, queued} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of transfers: %w", err)
		}
	}
	// Initialize the series, so that alerts work before the first transfer ends.
	for _, direction := range []string{directionImport, directionExport} {
		m.bytes.WithLabelValues(direction)
		for _, result := range []string{resultReady, resultFailed} {
			m.duration.WithLabelValues(direction, result)
		}
	}
	return m, nil
}

func (m *metrics) ended(direction, result, reason string, took time.Duration, bytes int64) {
	m.transfers.WithLabelValues(direction, result, reason).Inc()
	m.duration.WithLabelValues(direction, result).Observe(took.Seconds())
	m.bytes.WithLabelValues(direction).Add(float64(max(bytes, 0)))
}
