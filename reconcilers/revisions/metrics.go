package revisions

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/revision"
)

type metrics struct {
	copies   *prometheus.GaugeVec
	findings *prometheus.GaugeVec
	migrated prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		copies: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_stored_instancetypes",
			Help: "Copies of instance types and preferences in ControllerRevisions, by version of the stored object and class.",
		}, []string{"version", "class"}),
		findings: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_stored_instancetype_findings",
			Help: "Findings about stored instance types and the references to them, by kind: orphan, dangling, mismatched, unpinned, duplicate, skipped or failed.",
		}, []string{"kind"}),
		migrated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stencil_stored_instancetypes_migrated_total",
			Help: "Copies of instance types and preferences that were replaced or labelled.",
		}),
	}
	if err := errors.Join(registerer.Register(m.copies), registerer.Register(m.findings), registerer.Register(m.migrated)); err != nil {
		return nil, fmt.Errorf("registering the metrics of stored instance types: %w", err)
	}
	return m, nil
}

func (m *metrics) observe(done *result, status v1alpha1.RevisionMigrationStatus) {
	m.copies.Reset()
	// The series exists in a cluster without copies as well.
	m.copies.WithLabelValues(string(revision.Target), string(revision.Current)).Set(0)
	for _, class := range status.Classes {
		m.copies.WithLabelValues(class.Version, class.Class).Set(float64(class.Count))
	}
	for kind, n := range map[string]int{
		"orphan": int(*status.Orphans), "dangling": len(done.dangling), "mismatched": len(done.mismatched), "unpinned": len(done.unpinned),
		"duplicate": int(status.Duplicates.Count), "skipped": len(done.skips), "failed": len(done.failures) + len(done.unread),
	} {
		m.findings.WithLabelValues(kind).Set(float64(n))
	}
}
