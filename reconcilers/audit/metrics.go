package audit

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	policycache "github.com/vmstencil/stencil/cache/policies"
)

// metrics are for administrators. Replicas that are not the leader have none of the values.
type metrics struct {
	vms           *prometheus.GaugeVec
	policed       *prometheus.GaugeVec
	duration      prometheus.Gauge
	lastSuccess   prometheus.Gauge
	failures      prometheus.Counter
	reports       prometheus.Gauge
	served        prometheus.Gauge
	failedReports prometheus.Counter
	changed       prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		vms: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_audit_machines",
			Help: "VirtualMachines in the namespaces that an approval selects, at the last audit: those that satisfy this approval (conforming), those of them that have a value of a parameter which the approval does not list (warned), and those that satisfy none of the approvals that select their namespace (violating).",
		}, []string{"approval", "result"}),
		policed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stencil_audit_policy_machines",
			Help: "VirtualMachines that this policy applies to, at the last audit: those that it does not object to (conforming), those that it does (violating), and those that it would object to without a PolicyException (excepted).",
		}, []string{"policy", "result"}),
		duration:    gauge("stencil_audit_duration_seconds", "How long the last audit took."),
		lastSuccess: gauge("stencil_audit_last_success_timestamp_seconds", "When the last audit that did not fail ended, in seconds since 1970."),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stencil_audit_failures_total", Help: "Audits that failed.",
		}),
		reports: gauge("stencil_audit_reports", "OpenReports Reports that the last audit has written or found current."),
		served:  gauge("stencil_audit_reports_served", "1 when the definition of OpenReports Reports is installed, so that the audit writes some."),
		failedReports: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stencil_audit_report_failures_total", Help: "OpenReports Reports that could not be written or deleted.",
		}),
		changed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stencil_audit_changed_namespaces_total", Help: "Namespaces that were audited because a VirtualMachine, an instance, a pod or a claim in them changed.",
		}),
	}
	for _, collector := range []prometheus.Collector{m.vms, m.policed, m.duration, m.lastSuccess, m.failures, m.reports, m.served, m.failedReports, m.changed} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of the audit: %w", err)
		}
	}
	return m, nil
}

// publish sets the metrics of approvals with these names.
func (m *metrics) publish(names []string, found counts) {
	m.vms.Reset()
	for _, name := range names {
		one := found.of(name)
		m.vms.WithLabelValues(name, "conforming").Set(float64(one.conforming))
		m.vms.WithLabelValues(name, "warned").Set(float64(one.warned))
		m.vms.WithLabelValues(name, "violating").Set(float64(one.violating))
	}
}

// publishPolicies sets the metrics of these policies.
func (m *metrics) publishPolicies(states []policycache.State, found counts) {
	m.policed.Reset()
	for i := range states {
		name := states[i].Object.Name
		one := found.of(name)
		m.policed.WithLabelValues(name, "conforming").Set(float64(one.conforming))
		m.policed.WithLabelValues(name, "violating").Set(float64(one.violating))
		m.policed.WithLabelValues(name, "excepted").Set(float64(one.excepted))
	}
}
