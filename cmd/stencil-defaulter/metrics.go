package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/vmstencil/stencil/defaulting/engine"
	"github.com/vmstencil/stencil/defaulting/supervisor"
)

// registerMetrics registers the counters of the supervisor and the engine.
func registerMetrics(registry *prometheus.Registry, workers *supervisor.Supervisor, answers *engine.Engine) {
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		counter("stencil_defaulter_worker_restarts_total", "Number of times that the process with libvirt ended.", workers.Restarts),
		gauge("stencil_defaulter_waiting", "VMs that libvirt processes, or that wait for it.", workers.Waiting),
		gauge("stencil_defaulter_quarantined", "VMs in quarantine, because libvirt ended twice while it processed them.", workers.Quarantined),
	)
	counters := answers.Counters()
	for _, c := range []struct {
		name, help string
		value      func() int64
	}{
		{"answer_hits", "Requests that were answered from the cache.", counters.AnswerHits.Load},
		{"layout_hits", "VMs with a layout that was in the cache.", counters.LayoutHits.Load},
		{"misses", "VMs with a layout that was not in the cache.", counters.Misses.Load},
		{"refusals", "Layouts that libvirt rejected.", counters.Rejections.Load},
		{"drifts", "Layouts whose addresses would not stay.", counters.Drifts.Load},
	} {
		registry.MustRegister(counter("stencil_defaulter_"+c.name+"_total", c.help, c.value))
	}
}

func counter(name, help string, value func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
}

func gauge(name, help string, value func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
}
