package child

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of a Runner.
type metrics struct {
	checks  *prometheus.CounterVec
	seconds prometheus.Histogram
}

func newMetrics() *metrics {
	m := &metrics{
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_policy_checks_total",
			Help: "VirtualMachinePolicies that were compiled and tested in a child process, by how that ended: answered, memory, stack, timeout, crashed, killed, starved (of CPU time), unavailable (no process could be started), cancelled.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "stencil_policy_check_seconds",
			Help:    "Time that it took to compile and test a VirtualMachinePolicy in a child process, in seconds, with the start of the process where that was necessary.",
			Buckets: []float64{.005, .01, .05, .1, .5, 1, 5, 10},
		}),
	}
	for _, each := range ends() {
		m.checks.WithLabelValues(string(each))
	}
	return m
}

func (m *metrics) observe(e end, took time.Duration) {
	m.checks.WithLabelValues(string(e)).Inc()
	m.seconds.Observe(took.Seconds())
}

// Register registers the metrics.
func (r *Runner) Register(registerer prometheus.Registerer) error {
	return errors.Join(registerer.Register(r.metrics.checks), registerer.Register(r.metrics.seconds))
}
