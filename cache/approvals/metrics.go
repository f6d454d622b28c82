package approvals

import "github.com/prometheus/client_golang/prometheus"

// collector counts what is cached at the moment of the scrape.
type collector struct{ index *index }

var (
	sizeDesc = prometheus.NewDesc("stencil_approval_cache_approvals",
		"Number of TemplateApprovals in the cache, by whether they compile. One that does not approves nothing.", []string{"valid"}, nil)
	governedDesc = prometheus.NewDesc("stencil_approval_cache_governed_namespaces",
		"Number of namespaces that at least one TemplateApproval selects.", nil, nil)
	syncedDesc = prometheus.NewDesc("stencil_approval_cache_synced",
		"1 when the first lists of TemplateApprovals and namespaces have arrived.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- sizeDesc
	out <- governedDesc
	out <- syncedDesc
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	valid, invalid, governed := c.index.size()
	out <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, float64(valid), "true")
	out <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, float64(invalid), "false")
	out <- prometheus.MustNewConstMetric(governedDesc, prometheus.GaugeValue, float64(governed))
	synced := 0.0
	if c.index.hasSynced() {
		synced = 1
	}
	out <- prometheus.MustNewConstMetric(syncedDesc, prometheus.GaugeValue, synced)
}
