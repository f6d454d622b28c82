package selfprotection

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of self-protection.
type metrics struct {
	restored  *prometheus.CounterVec
	protected prometheus.Gauge
	changed   *prometheus.GaugeVec
}

func newMetrics() metrics {
	return metrics{
		restored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_restored_objects_total",
			Help: "Webhook configurations, admission policies and bindings of Stencil that were restored because they had been changed or deleted, by kind and name.",
		}, []string{"kind", "name"}),
		protected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stencil_protected_objects",
			Help: "Number of objects that are restored or reported if they are changed or deleted; 0 on replicas that do not lead.",
		}),
		changed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_changed_objects",
			Help: "1 for each admission policy and binding of Stencil that was changed or deleted and is not restored, by kind and name.",
		}, []string{"kind", "name"}),
	}
}
