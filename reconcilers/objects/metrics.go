package objects

import "github.com/prometheus/client_golang/prometheus"

// Results of the creation of an object.
const (
	resultCreated = "created"
	resultFailed  = "failed"
)

func newResults() *prometheus.CounterVec {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stencil_objects_total",
		Help: "Objects of templates besides the VirtualMachine: those that were created, and attempts that failed.",
	}, []string{"result"})
	// Initialize the series, so that alerts work before the first object is created.
	for _, result := range []string{resultCreated, resultFailed} {
		results.WithLabelValues(result)
	}
	return results
}
