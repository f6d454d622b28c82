package templates

import (
	"github.com/prometheus/client_golang/prometheus"
)

// collector counts the cached templates at the moment of the scrape.
type collector struct{ cache *Cache }

var (
	sizeDesc = prometheus.NewDesc("stencil_template_cache_templates",
		"Number of VirtualMachineTemplates in the cache, by whether they compile.", []string{"valid"}, nil)
	syncedDesc = prometheus.NewDesc("stencil_template_cache_synced",
		"1 when the first list of templates has arrived.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- sizeDesc
	out <- syncedDesc
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	valid, invalid := 0, 0
	for _, t := range c.cache.List() {
		if _, err := t.Compiled(); err != nil {
			invalid++
		} else {
			valid++
		}
	}
	out <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, float64(valid), "true")
	out <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, float64(invalid), "false")
	synced := 0.0
	if c.cache.Synced() {
		synced = 1
	}
	out <- prometheus.MustNewConstMetric(syncedDesc, prometheus.GaugeValue, synced)
}
