package exemptions

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	found   prometheus.Gauge
	unknown *prometheus.GaugeVec
}

func newMetrics() metrics {
	return metrics{
		found: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stencil_exempt_users_found",
			Help: "Service accounts of KubeVirt and CDI that are exempt from TemplateApprovals.",
		}),
		unknown: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_exempt_users_unknown",
			Help: "1 for each name in exemptUsers that is that of no installed controller, and exempts no user.",
		}, []string{"user"}),
	}
}

func (m metrics) report(p plan) {
	m.found.Set(float64(len(p.exempt)))
	m.unknown.Reset()
	for _, each := range p.problems {
		m.unknown.WithLabelValues(each.user).Set(1)
	}
}
