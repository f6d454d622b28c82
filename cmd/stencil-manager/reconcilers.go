package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/reconcilers/audit"
	"github.com/vmstencil/stencil/reconcilers/audit/observed"
	"github.com/vmstencil/stencil/reconcilers/capture"
	"github.com/vmstencil/stencil/reconcilers/coverage"
	"github.com/vmstencil/stencil/reconcilers/governed"
	"github.com/vmstencil/stencil/reconcilers/policylibrary"
	"github.com/vmstencil/stencil/reconcilers/selfprotection"
	"github.com/vmstencil/stencil/reconcilers/statuswriter"
)

// addReconcilers adds the reconcilers that the leader runs, except for the one of caBundles,
// which addCertificates adds.
func addReconcilers(mgr manager.Manager, c caches, o *options) error {
	covered, err := coverage.New(coverage.Options{
		Config:       mgr.GetConfig(),
		HTTPClient:   mgr.GetHTTPClient(),
		Mapper:       mgr.GetRESTMapper(),
		OwnNamespace: o.namespace,
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(covered); err != nil {
		return fmt.Errorf("adding the watches of approvals and namespaces: %w", err)
	}
	statuses, err := statuswriter.New(mgr.GetConfig())
	if err != nil {
		return err
	}
	labels := governed.New(governed.Options{
		Coverage:  covered,
		Reader:    mgr.GetAPIReader(),
		Client:    mgr.GetClient(),
		Statuses:  statuses,
		Recorder:  mgr.GetEventRecorder("stencil-governed"),
		Namespace: o.namespace,
	})
	if err := labels.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := addExemptions(mgr, o, covered, statuses); err != nil {
		return err
	}
	additions, err := approval.ClusterAdditions(o.clusterAdditions...)
	if err != nil {
		return fmt.Errorf("--cluster-additions: %w", err)
	}
	if o.defaultingSocket != "" {
		additions = additions.WithDefaults()
	}
	running, err := observed.New(mgr.GetConfig(), mgr.GetLogger().WithName("audit"))
	if err != nil {
		return err
	}
	if err := mgr.Add(running); err != nil {
		return fmt.Errorf("adding the watches of what runs: %w", err)
	}
	audits, err := audit.New(audit.Options{
		Config:     mgr.GetConfig(),
		Coverage:   covered,
		Templates:  c.templates,
		Client:     mgr.GetClient(),
		Recorder:   mgr.GetEventRecorder("stencil-audit"),
		Registerer: metrics.Registry,
		Interval:   o.auditInterval,
		Additions:  additions,

		Observed:        running,
		LauncherImages:  o.launcherImages,
		Controllers:     o.ownerGroups,
		OpenEntryPoints: o.openEntryPoints,

		WritableKeys:  o.writableKeys,
		Policies:      c.policies,
		Instancetypes: c.instancetypes,
		Namespaces:    c.approvals,
	})
	if err != nil {
		return err
	}
	if err := audits.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := addCompliance(mgr, c, o); err != nil {
		return err
	}
	if err := addReadiness(mgr, c, o); err != nil {
		return err
	}
	if err := addPolicies(mgr, c, o); err != nil {
		return err
	}
	if err := addCapture(mgr); err != nil {
		return err
	}
	if o.policyLibrary != "" {
		library := policylibrary.New(policylibrary.Options{
			ConfigMap: types.NamespacedName{Namespace: o.namespace, Name: o.policyLibrary},
			Reader:    mgr.GetAPIReader(),
			Client:    mgr.GetClient(),
			Recorder:  mgr.GetEventRecorder("stencil-policy-library"),
		})
		if err := library.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if o.protectedObjects == "" {
		return nil
	}
	protection, err := selfprotection.New(selfprotection.Options{
		ConfigMap:  types.NamespacedName{Namespace: o.namespace, Name: o.protectedObjects},
		Reader:     mgr.GetAPIReader(),
		Client:     mgr.GetClient(),
		Recorder:   mgr.GetEventRecorder("stencil-self-protection"),
		Registerer: metrics.Registry,
	})
	if err != nil {
		return err
	}
	return protection.SetupWithManager(mgr)
}

// addCapture adds the reconciler that captures VirtualMachines as templates.
func addCapture(mgr manager.Manager) error {
	cluster, err := capture.NewCluster(mgr.GetConfig())
	if err != nil {
		return err
	}
	captures, err := capture.New(capture.Options{
		Cluster:    cluster,
		Recorder:   mgr.GetEventRecorder("stencil-capture"),
		Registerer: metrics.Registry,
	})
	if err != nil {
		return err
	}
	return captures.SetupWithManager(mgr)
}
