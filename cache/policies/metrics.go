package policies

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// metrics are the metrics of one replica.
type metrics struct {
	evaluations *prometheus.HistogramVec
	outcomes    *prometheus.CounterVec
	quarantines *prometheus.CounterVec
	compiling   *prometheus.HistogramVec

	// handles holds the handles of the active policies, by name: a lookup by labels for each evaluation would take longer
	// than some policies do.
	handles sync.Map
}

// handle holds the metrics of one policy.
type handle struct {
	duration prometheus.Observer
	outcomes map[policyset.Result]prometheus.Counter
}

var allOutcomes = []policyset.Result{
	policyset.ResultAllow, policyset.ResultDeny, policyset.ResultWarn,
	policyset.ResultError, policyset.ResultTimeout, policyset.ResultQuarantined,
}

func newMetrics() *metrics {
	return &metrics{
		evaluations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "stencil_policy_evaluation_seconds",
			Help:    "Time that evaluations of a VirtualMachinePolicy took, in seconds.",
			Buckets: []float64{.00002, .00005, .0001, .0002, .0005, .001, .002, .005, .01, .05, .1, .5},
		}, []string{"policy"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_policy_evaluations_total",
			Help: "Evaluations of a VirtualMachinePolicy by result, regardless of its enforcement: allow, deny, warn, error, timeout, or quarantined (not evaluated).",
		}, []string{"policy", "outcome"}),
		quarantines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_policy_quarantines_total",
			Help: "Number of times that a VirtualMachinePolicy was put into quarantine because its evaluations repeatedly took too long.",
		}, []string{"policy"}),
		compiling: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "stencil_policy_compile_seconds",
			Help:    "Time that it took to compile a VirtualMachinePolicy, in seconds, by whether it compiles and its tests pass (good) or not (broken).",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .5, 1, 5},
		}, []string{"result"}),
	}
}

func (m *metrics) register(registerer prometheus.Registerer, c *Cache) error {
	var problems []error
	for _, each := range []prometheus.Collector{m.evaluations, m.outcomes, m.quarantines, m.compiling, &collector{c}} {
		problems = append(problems, registerer.Register(each))
	}
	return errors.Join(problems...)
}

// syncHandles creates handles for the policies of a set, and deletes the series of all others.
func (m *metrics) syncHandles(set *policyset.Set) {
	present := map[string]bool{}
	for _, entry := range set.Entries() {
		name := entry.Policy.Name()
		present[name] = true
		if _, found := m.handles.Load(name); found {
			continue
		}
		one := &handle{duration: m.evaluations.WithLabelValues(name), outcomes: map[policyset.Result]prometheus.Counter{}}
		for _, outcome := range allOutcomes {
			one.outcomes[outcome] = m.outcomes.WithLabelValues(name, string(outcome))
		}
		m.handles.Store(name, one)
	}
	m.handles.Range(func(key, _ any) bool {
		if name := key.(string); !present[name] {
			m.handles.Delete(name)
			labels := prometheus.Labels{"policy": name}
			m.evaluations.DeletePartialMatch(labels)
			m.outcomes.DeletePartialMatch(labels)
			m.quarantines.DeletePartialMatch(labels)
		}
		return true
	})
}

// observe counts an evaluation. It ignores policies that have been deleted meanwhile.
func (m *metrics) observe(e policyset.Evaluation) {
	stored, found := m.handles.Load(e.Policy)
	if !found {
		return
	}
	one := stored.(*handle)
	if counter := one.outcomes[e.Result]; counter != nil {
		counter.Inc()
	}
	if e.Result != policyset.ResultQuarantined {
		one.duration.Observe(e.Duration.Seconds())
	}
}

func (m *metrics) quarantined(policy string) {
	if _, found := m.handles.Load(policy); found {
		m.quarantines.WithLabelValues(policy).Inc()
	}
}

func (m *metrics) built(b *build) {
	result := "good"
	if b.good == nil {
		result = "broken"
	}
	if b.compiling > 0 {
		m.compiling.WithLabelValues(result).Observe(b.compiling.Seconds())
	}
}

// collector counts what is cached at the moment of the scrape.
type collector struct{ cache *Cache }

var (
	policiesDesc = prometheus.NewDesc("stencil_policies",
		"Number of VirtualMachinePolicies, by state: active (the current version is active), lastGood (broken, an earlier version is active), broken (no version can be evaluated, failureMode applies), inactive (no version is active).", []string{"state"}, nil)
	quarantinedDesc = prometheus.NewDesc("stencil_policies_quarantined",
		"Number of VirtualMachinePolicies that are in quarantine.", nil, nil)
	syncedDesc = prometheus.NewDesc("stencil_policy_cache_synced",
		"1 when all VirtualMachinePolicies that existed at the start are compiled and tested.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- policiesDesc
	out <- quarantinedDesc
	out <- syncedDesc
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	counts, quarantined := map[string]int{}, 0
	for _, state := range c.cache.States() {
		counts[stateName(&state)]++
		if state.Quarantine != nil {
			quarantined++
		}
	}
	for _, name := range []string{stateActive, stateLastGood, stateBroken, stateInactive} {
		out <- prometheus.MustNewConstMetric(policiesDesc, prometheus.GaugeValue, float64(counts[name]), name)
	}
	out <- prometheus.MustNewConstMetric(quarantinedDesc, prometheus.GaugeValue, float64(quarantined))
	synced := 0.0
	if c.cache.Synced() {
		synced = 1
	}
	out <- prometheus.MustNewConstMetric(syncedDesc, prometheus.GaugeValue, synced)
}

// States of policies, as values of the metric's label.
const (
	stateActive   = "active"
	stateLastGood = "lastGood"
	stateBroken   = "broken"
	stateInactive = "inactive"
)

func stateName(s *State) string {
	switch {
	case s.Active != nil && s.Active.Generation == s.Object.Generation:
		return stateActive
	case s.Active != nil:
		return stateLastGood
	case s.Broken != nil:
		return stateBroken
	default:
		return stateInactive
	}
}
