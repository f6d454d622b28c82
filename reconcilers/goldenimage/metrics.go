package goldenimage

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

type metrics struct {
	state, imported, next *prometheus.GaugeVec
	checks                *prometheus.CounterVec
	imports               prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	of := []string{"namespace", "name"}
	m := &metrics{
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
	for _, one := range []prometheus.Collector{m.state, m.imported, m.next, m.checks, m.imports} {
		errs = append(errs, registerer.Register(one))
	}
	return m, errors.Join(errs...)
}

// forget removes the series of an image.
func (m *metrics) forget(name types.NamespacedName) {
	of := prometheus.Labels{"namespace": name.Namespace, "name": name.Name}
	m.state.DeletePartialMatch(of)
	m.imported.DeletePartialMatch(of)
	m.next.DeletePartialMatch(of)
}

// observe sets the series of an image.
func (m *metrics) observe(name types.NamespacedName, status *v1alpha1.GoldenImageStatus) {
	m.forget(name)
	if upToDate := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionUpToDate); upToDate != nil {
		m.state.WithLabelValues(name.Namespace, name.Name, upToDate.Reason).Set(1)
	}
	for _, one := range status.Architectures {
		if one.Current != nil {
			m.imported.WithLabelValues(name.Namespace, name.Name, one.Name).Set(float64(one.Current.ImportedAt.Unix()))
		}
	}
	if status.NextCheckTime != nil {
		m.next.WithLabelValues(name.Namespace, name.Name).Set(float64(status.NextCheckTime.Unix()))
	}
}
