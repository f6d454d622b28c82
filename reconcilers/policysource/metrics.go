package policysource

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

var stateDescription = prometheus.NewDesc("stencil_policy_source_state",
	"1 for the reason of condition Ready of each VirtualMachinePolicySource.", []string{"source", "reason"}, nil)

// metrics collects the reasons of the sources. It is safe for concurrent use.
type metrics struct {
	mutex   sync.Mutex
	reasons map[string]string
}

// set stores the reason of a source; an empty one removes the source.
func (m *metrics) set(source, reason string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if reason == "" {
		delete(m.reasons, source)
		return
	}
	m.reasons[source] = reason
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) { out <- stateDescription }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for source, reason := range m.reasons {
		out <- prometheus.MustNewConstMetric(stateDescription, prometheus.GaugeValue, 1, source, reason)
	}
}
