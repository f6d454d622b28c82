package cabundle

import "github.com/prometheus/client_golang/prometheus"

// newUpdates returns the counter of changes.
func newUpdates() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stencil_ca_bundle_updates_total",
		Help: "Changes of the caBundle of a webhook configuration, by configuration. More than two per rotation mean that another client resets it.",
	}, []string{"configuration"})
}
