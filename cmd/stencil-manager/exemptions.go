package main

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/reconcilers/coverage"
	"github.com/vmstencil/stencil/reconcilers/exemptions"
	"github.com/vmstencil/stencil/reconcilers/statuswriter"
)

// exemptNames returns the names of --exempt-users.
func (o *options) exemptNames() exemption.Names { return exemption.Parse(o.exemptUsers, o.namespace) }

// addExemptions adds the reconciler that exempts the controllers of KubeVirt and CDI.
func addExemptions(mgr manager.Manager, o *options, covered *coverage.Watch, statuses *statuswriter.Writer) error {
	if o.exemptBinding == "" {
		return nil
	}
	client, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the client of service accounts: %w", err)
	}
	kubevirts, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the client of KubeVirt objects: %w", err)
	}
	reconciler, err := exemptions.New(exemptions.Options{
		Names:      o.exemptNames(),
		Binding:    o.exemptBinding,
		Client:     client,
		KubeVirts:  kubevirts,
		Approvals:  covered,
		Statuses:   statuses,
		Recorder:   mgr.GetEventRecorder("stencil-exemptions"),
		Registerer: metrics.Registry,
	})
	if err != nil {
		return err
	}
	return reconciler.SetupWithManager(mgr, covered)
}
