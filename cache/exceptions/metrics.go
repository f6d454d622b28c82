package exceptions

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// metrics are the metrics of one replica.
type metrics struct {
	uses *prometheus.CounterVec

	// mutex guards present, the pairs of policies and exceptions that have a series: those of the exceptions that exist.
	mutex   sync.Mutex
	present map[pair]bool
}

// pair is one policy of an exception.
type pair struct{ policy, exception string }

func newMetrics() *metrics {
	return &metrics{
		uses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_policy_exceptions_used_total",
			Help: "Requests for VirtualMachines that violated this VirtualMachinePolicy and were allowed by this PolicyException. The series of deleted exceptions are removed.",
		}, []string{"policy", "exception"}),
		present: map[pair]bool{},
	}
}

func (m *metrics) register(registerer prometheus.Registerer, c *Cache) error {
	return errors.Join(registerer.Register(m.uses), registerer.Register(&collector{c}))
}

// retain creates the series of these exceptions, and removes all others.
func (m *metrics) retain(list []*policyset.Exception) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	next := map[pair]bool{}
	for _, one := range list {
		for _, policy := range one.Policies() {
			next[pair{policy, one.Name}] = true
			m.uses.WithLabelValues(policy, one.Name)
		}
	}
	for each := range m.present {
		if !next[each] {
			m.uses.DeleteLabelValues(each.policy, each.exception)
		}
	}
	m.present = next
}

// used counts the exceptions of one request. It ignores those that have been deleted meanwhile.
func (m *metrics) used(excepted []policyset.Excepted) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	counted := map[pair]bool{}
	for _, e := range excepted {
		one := pair{e.Policy, e.Exception.Name}
		if m.present[one] && !counted[one] {
			counted[one] = true
			m.uses.WithLabelValues(one.policy, one.exception).Inc()
		}
	}
}

// collector describes what is cached at the moment of the scrape.
type collector struct{ cache *Cache }

var (
	countDesc = prometheus.NewDesc("stencil_policy_exceptions",
		"Number of PolicyExceptions, by state: active or expired.", []string{"state"}, nil)
	expiryDesc = prometheus.NewDesc("stencil_policy_exception_expiry_timestamp_seconds",
		"When this PolicyException ends or has ended, in seconds since 1970.", []string{"exception"}, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- countDesc
	out <- expiryDesc
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	now := c.cache.clock.Now()
	counts := map[bool]int{}
	for _, one := range c.cache.index.List() {
		counts[one.exception.Active(now)]++
		out <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, float64(one.exception.Expires.Unix()), one.exception.Name)
	}
	out <- prometheus.MustNewConstMetric(countDesc, prometheus.GaugeValue, float64(counts[true]), "active")
	out <- prometheus.MustNewConstMetric(countDesc, prometheus.GaugeValue, float64(counts[false]), "expired")
}
