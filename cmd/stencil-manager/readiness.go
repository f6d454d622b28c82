package main

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/reconcilers/readiness"
)

// addReadiness adds the reconciler that reports whether templates are usable.
func addReadiness(mgr manager.Manager, c caches, o *options) error {
	return readiness.SetupWithManager(mgr, readiness.Options{
		Config:     mgr.GetConfig(),
		Templates:  c.templates,
		Recorder:   mgr.GetEventRecorder("stencil-readiness"),
		Registerer: metrics.Registry,
		DryRun:     o.readinessDryRun,
	})
}
