package schemas

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of one replica.
type metrics struct{ added, unusable *prometheus.GaugeVec }

func newMetrics() *metrics {
	m := &metrics{
		added: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_policy_schema_added_fields",
			Help: "Number of fields that policies can read because the definition of the installed KubeVirt has them, by kind.",
		}, []string{"kind"}),
		unusable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_policy_schema_unusable",
			Help: "1 if the fields of the definition of the installed KubeVirt could not be read or added, so that the last good ones stay in use, by kind.",
		}, []string{"kind"}),
	}
	for _, each := range followed {
		m.added.WithLabelValues(each.kind).Set(0)
		m.unusable.WithLabelValues(each.kind).Set(0)
	}
	return m
}

func (m *metrics) register(registerer prometheus.Registerer) error {
	return errors.Join(registerer.Register(m.added), registerer.Register(m.unusable))
}
