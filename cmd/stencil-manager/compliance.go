package main

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/reconcilers/compliance"
)

// addCompliance adds the reconciler that checks templates against the policies.
func addCompliance(mgr manager.Manager, c caches, o *options) error {
	templates, err := compliance.New(compliance.Options{
		Config:        mgr.GetConfig(),
		Templates:     c.templates,
		Policies:      c.policies,
		Instancetypes: c.instancetypes,
		Namespaces:    c.approvals,
		Registerer:    metrics.Registry,
		Interval:      o.auditInterval,
	})
	if err != nil {
		return err
	}
	return templates.SetupWithManager(mgr)
}
