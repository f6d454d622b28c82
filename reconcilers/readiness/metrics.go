package readiness

import (
	"fmt"
	"strings"
	"sync"
	"unique"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// maximumSeries is the maximum number of templates that have a series of their own because they are not ready.
const maximumSeries = 1000

// Values of the label object of the metric of events.
const (
	objectTemplate = "template"
	objectSource   = "source"
)

var (
	templatesDescription = prometheus.NewDesc("stencil_template_readiness",
		"VirtualMachineTemplates by the status of their condition Ready.", []string{"status"}, nil)
	notReadyDescription = prometheus.NewDesc("stencil_template_not_ready",
		fmt.Sprintf("VirtualMachineTemplates that are not ready, one series each with the reason, for up to %d of them.", maximumSeries),
		[]string{"template_namespace", "template", "reason"}, nil)
	staleDescription = prometheus.NewDesc("stencil_template_boot_source_stale",
		"VirtualMachineTemplates with an image that is older than the limit of its GoldenImage.", nil, nil)
)

// metrics are the metrics of readiness. Only the leader sets their values.
type metrics struct {
	writes  prometheus.Counter
	events  *prometheus.CounterVec
	dryRuns *prometheus.CounterVec

	mutex sync.Mutex
	// readiness has an item for every template, and few different values.
	readiness map[types.NamespacedName]unique.Handle[readyState]
}

// readyState is what is counted of the conditions Ready and BootSourceStale of a template.
type readyState struct {
	status metav1.ConditionStatus
	reason string
	stale  bool
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		readiness: map[types.NamespacedName]unique.Handle[readyState]{},
		writes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stencil_template_readiness_writes_total",
			Help: "Statuses of VirtualMachineTemplates that were written because their readiness had changed.",
		}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_template_readiness_events_total",
			Help: "Events about changes of the readiness of VirtualMachineTemplates, by the object that they are about: a template, or the source of several ones.",
		}, []string{"object"}),
		dryRuns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_template_dry_runs_total",
			Help: "Dry runs of the VirtualMachines of templates, by outcome.",
		}, []string{"outcome"}),
	}
	for _, collector := range []prometheus.Collector{m, m.writes, m.events, m.dryRuns} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of template readiness: %w", err)
		}
	}
	for _, object := range []string{objectTemplate, objectSource} {
		m.events.WithLabelValues(object)
	}
	// Alerts need series that exist before the first dry run.
	for _, reason := range []string{v1beta1.ReasonAccepted, v1beta1.ReasonRefused, v1beta1.ReasonNotTried, v1beta1.ReasonParametersRequired, v1beta1.ReasonNotRendered} {
		m.dryRuns.WithLabelValues(strings.ToLower(reason))
	}
	return m, nil
}

// observe counts the condition Ready of a template and whether an image is stale, or removes the template if the condition is nil.
func (m *metrics) observe(name types.NamespacedName, ready *metav1.Condition, stale bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if ready == nil {
		delete(m.readiness, name)
	} else {
		m.readiness[name] = unique.Make(readyState{ready.Status, ready.Reason, stale})
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(into chan<- *prometheus.Desc) {
	into <- templatesDescription
	into <- notReadyDescription
	into <- staleDescription
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(into chan<- prometheus.Metric) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if len(m.readiness) == 0 {
		return
	}
	counts := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 0, metav1.ConditionFalse: 0, metav1.ConditionUnknown: 0}
	stale := 0
	for name, handle := range m.readiness {
		state := handle.Value()
		if state.stale {
			stale++
		}
		counts[state.status]++
		// A template with status Unknown is not ready, either.
		if state.status != metav1.ConditionTrue && counts[metav1.ConditionFalse]+counts[metav1.ConditionUnknown] <= maximumSeries {
			into <- prometheus.MustNewConstMetric(notReadyDescription, prometheus.GaugeValue, 1, name.Namespace, name.Name, state.reason)
		}
	}
	into <- prometheus.MustNewConstMetric(staleDescription, prometheus.GaugeValue, float64(stale))
	for status, count := range counts {
		into <- prometheus.MustNewConstMetric(templatesDescription, prometheus.GaugeValue, float64(count), string(status))
	}
}
