package goldenimage

import (
	"errors"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

type metrics struct {
	state, imported, next, templates, vms *prometheus.GaugeVec
	checks                                *prometheus.CounterVec
	imports                               prometheus.Counter

	mutex sync.Mutex
	// observed are the labels of the series of each image.
	observed map[types.NamespacedName]series
}

type series struct {
	reason        string
	architectures []string
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	of := []string{"namespace", "name"}
	m := &metrics{
		observed: map[types.NamespacedName]series{},
		templates: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_golden_image_templates",
			Help: "VirtualMachineTemplates with a disk from a DataSource of a GoldenImage.",
		}, of),
		vms: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_golden_image_virtual_machines",
			Help: "VirtualMachines with a disk from a DataSource of a GoldenImage.",
		}, of),
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_golden_image_state",
			Help: "1 for the reason of the condition UpToDate of each GoldenImage.",
		}, append(of, "reason")),
		imported: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_golden_image_imported_timestamp_seconds",
			Help: "Time of the import of the image that the DataSource of a GoldenImage stands for.",
		}, append(of, "architecture")),
		next: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_golden_image_next_check_timestamp_seconds",
			Help: "Time of the next check of the source of a GoldenImage.",
		}, of),
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_golden_image_checks_total",
			Help: "Checks of the sources of GoldenImages, by result: succeeded or failed.",
		}, []string{"result"}),
		imports: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stencil_golden_image_imports_total",
			Help: "Images that were imported for GoldenImages.",
		}),
	}
	// Initialize the series, so that alerts work before the first check.
	m.checks.WithLabelValues("succeeded")
	m.checks.WithLabelValues("failed")
	var errs []error
	for _, one := range []prometheus.Collector{m.state, m.imported, m.next, m.templates, m.vms, m.checks, m.imports} {
		errs = append(errs, registerer.Register(one))
	}
	return m, errors.Join(errs...)
}

// forget removes the series of an image.
func (m *metrics) forget(name types.NamespacedName) {
	of := prometheus.Labels{"namespace": name.Namespace, "name": name.Name}
	for _, one := range []*prometheus.GaugeVec{m.state, m.imported, m.next, m.templates, m.vms} {
		one.DeletePartialMatch(of)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.observed, name)
}

// observe sets the series of an image, and removes those that it no longer has: a scrape at any time sees the others.
func (m *metrics) observe(name types.NamespacedName, status *v1alpha1.GoldenImageStatus) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var now series
	if upToDate := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionUpToDate); upToDate != nil {
		now.reason = upToDate.Reason
		m.state.WithLabelValues(name.Namespace, name.Name, now.reason).Set(1)
	}
	for _, one := range status.Architectures {
		if one.Current != nil {
			now.architectures = append(now.architectures, one.Name)
			m.imported.WithLabelValues(name.Namespace, name.Name, one.Name).Set(float64(one.Current.ImportedAt.Unix()))
		}
	}
	if status.NextCheckTime != nil {
		m.next.WithLabelValues(name.Namespace, name.Name).Set(float64(status.NextCheckTime.Unix()))
	} else {
		m.next.DeleteLabelValues(name.Namespace, name.Name)
	}
	before := m.observed[name]
	if before.reason != now.reason {
		m.state.DeleteLabelValues(name.Namespace, name.Name, before.reason)
	}
	for _, architecture := range before.architectures {
		if !slices.Contains(now.architectures, architecture) {
			m.imported.DeleteLabelValues(name.Namespace, name.Name, architecture)
		}
	}
	m.observed[name] = now
}

// used sets the series about the usage of an image.
func (m *metrics) used(name types.NamespacedName, usage *v1alpha1.GoldenImageUsage) {
	m.templates.WithLabelValues(name.Namespace, name.Name).Set(float64(usage.Templates))
	if usage.VirtualMachines == nil {
		m.vms.DeleteLabelValues(name.Namespace, name.Name)
		return
	}
	m.vms.WithLabelValues(name.Namespace, name.Name).Set(float64(*usage.VirtualMachines))
}
