package instancetypes

import "github.com/prometheus/client_golang/prometheus"

// collector counts what is cached at the moment of the scrape.
type collector struct{ index *index }

var (
	sizeDesc = prometheus.NewDesc("stencil_instancetype_cache_objects",
		"Number of instance types, preferences and revisions of either in the cache, by kind.", []string{"kind"}, nil)
	syncedDesc = prometheus.NewDesc("stencil_instancetype_cache_synced",
		"1 when the first lists have arrived, or their kinds are not served.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- sizeDesc
	out <- syncedDesc
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for _, kind := range kinds {
		out <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, float64(c.index.kinds[kind].Len()), kind)
	}
	synced := 0.0
	if c.index.hasSynced() {
		synced = 1
	}
	out <- prometheus.MustNewConstMetric(syncedDesc, prometheus.GaugeValue, synced)
}
