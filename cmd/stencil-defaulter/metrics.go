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
		counter("stencil_defaulter_worker_restarts_total", "How often the process that has libvirt in it ended.", workers.Restarts),
		gauge("stencil_defaulter_waiting", "Machines that are in libvirt or wait for it.", workers.Waiting),
		gauge("stencil_defaulter_quarantined", "Machines on which libvirt has died twice, and that are tried again after a while.", workers.Quarantined),
	)
	counters := answers.Counters()
	for _, c := range []struct {
		name, help string
		value      func() int64
	}{
		{"answer_hits", "Requests that were answered before.", counters.AnswerHits.Load},
		{"layout_hits", "Machines whose layout was known.", counters.LayoutHits.Load},
		{"misses", "Machines whose layout was not known.", counters.Misses.Load},
		{"refusals", "Layouts that libvirt refused.", counters.Rejections.Load},
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
