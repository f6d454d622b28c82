package policyeval

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// resultUnavailable complements the values of package policyinput: the request could not be evaluated.
const resultUnavailable = "unavailable"

// Metrics are the metrics of policy decisions.
type Metrics struct{ decisions *prometheus.CounterVec }

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stencil_policy_decisions_total",
		Help: "Admission requests that policies evaluated, by outcome: allowed, warned, denied, or unavailable if no decision was possible.",
	}, []string{"kind", "operation", "outcome"})}
	if err := registerer.Register(m.decisions); err != nil {
		return nil, fmt.Errorf("registering the metrics of policy decisions: %w", err)
	}
	return m, nil
}
