package compliance

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of the check. Only the leader sets their values.
type metrics struct {
	noncompliant, duration prometheus.Gauge
	failures               prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		noncompliant: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stencil_policy_noncompliant_templates",
			Help: "VirtualMachineTemplates with VirtualMachines that a policy denies, at the last check.",
		}),
		duration: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stencil_policy_template_check_duration_seconds",
			Help: "How long the last check of all templates against the policies took.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stencil_policy_template_check_failures_total",
			Help: "Checks of all templates against the policies whose results could not all be written.",
		}),
	}
	for _, collector := range []prometheus.Collector{m.noncompliant, m.duration, m.failures} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of the policy check of templates: %w", err)
		}
	}
	return m, nil
}
