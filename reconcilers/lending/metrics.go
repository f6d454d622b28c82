package lending

import "github.com/prometheus/client_golang/prometheus"

// Results of lending a disk.
const (
	resultLent   = "lent"
	resultDenied = "denied"
	resultFailed = "failed"
)

func newResults() *prometheus.CounterVec {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stencil_disks_total",
		Help: "Disks of VirtualMachines that are copied from the namespace of their template: DataVolumes that were created (lent), that neither the template lends nor KubeVirt may create (denied), and attempts that failed.",
	}, []string{"result"})
	// Initialize the series, so that alerts work before the first disk is lent.
	for _, result := range []string{resultLent, resultDenied, resultFailed} {
		results.WithLabelValues(result)
	}
	return results
}
