package reconcilers

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vmstencil/stencil/reconcilers/audit"
	"github.com/vmstencil/stencil/reconcilers/audit/observed"
	"github.com/vmstencil/stencil/reconcilers/exemptions"
	"github.com/vmstencil/stencil/reconcilers/governed"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// SetupApprovals adds the reconcilers of approvals: governed labels, exempt users and the audit. Setup calls it; a test may
// run these reconcilers alone.
func SetupApprovals(mgr manager.Manager, o Options) error {
	_, _, err := setupApprovals(mgr, o)
	return err
}

// setupApprovals returns the watches of approvals and namespaces, and those of what runs, besides.
func setupApprovals(mgr manager.Manager, o Options) (*coverage.Watch, *observed.Watch, error) {
	covered, err := coverage.New(coverage.Options{
		Config:       mgr.GetConfig(),
		HTTPClient:   mgr.GetHTTPClient(),
		Mapper:       mgr.GetRESTMapper(),
		OwnNamespace: o.Namespace,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := mgr.Add(covered); err != nil {
		return nil, nil, fmt.Errorf("adding the watches of approvals and namespaces: %w", err)
	}
	statuses, err := statuswriter.New(mgr.GetConfig())
	if err != nil {
		return nil, nil, err
	}
	labels := governed.New(governed.Options{
		Coverage:  covered,
		Reader:    mgr.GetAPIReader(),
		Client:    mgr.GetClient(),
		Statuses:  statuses,
		Recorder:  mgr.GetEventRecorder("stencil-governed"),
		Namespace: o.Namespace,
	})
	if err := labels.SetupWithManager(mgr); err != nil {
		return nil, nil, err
	}
	if err := setupExemptions(mgr, o, covered, statuses); err != nil {
		return nil, nil, err
	}
	running, err := setupAudit(mgr, o, covered)
	return covered, running, err
}

// setupExemptions adds the reconciler that exempts the controllers of KubeVirt and CDI.
func setupExemptions(mgr manager.Manager, o Options, covered *coverage.Watch, statuses *statuswriter.Writer) error {
	if o.ExemptBinding == "" {
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
		Names:      o.ExemptNames,
		Binding:    o.ExemptBinding,
		Client:     client,
		KubeVirts:  kubevirts,
		Approvals:  covered,
		Statuses:   statuses,
		Recorder:   mgr.GetEventRecorder("stencil-exemptions"),
		Registerer: o.Registerer,
	})
	if err != nil {
		return err
	}
	return reconciler.SetupWithManager(mgr, covered)
}

// setupAudit adds the audit, and the watches of what runs, which it returns.
func setupAudit(mgr manager.Manager, o Options, covered *coverage.Watch) (*observed.Watch, error) {
	running, err := observed.New(mgr.GetConfig(), mgr.GetLogger().WithName("audit"))
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(running); err != nil {
		return nil, fmt.Errorf("adding the watches of what runs: %w", err)
	}
	options := audit.Options{
		Config:     mgr.GetConfig(),
		Coverage:   covered,
		Templates:  o.Templates,
		Client:     mgr.GetClient(),
		Recorder:   mgr.GetEventRecorder("stencil-audit"),
		Registerer: o.Registerer,
		Interval:   o.Audit.Interval,
		Additions:  o.Audit.Additions,

		Observed:        running,
		LauncherImages:  o.Audit.LauncherImages,
		Controllers:     o.Audit.Controllers,
		OpenEntryPoints: o.Audit.OpenEntryPoints,
		ChangeDelay:     o.Audit.ChangeDelay,

		ReportsInterval: o.Audit.ReportsInterval,
		WritableKeys:    o.Audit.WritableKeys,
	}
	// A nil pointer in an interface is not nil.
	if o.Policies != nil {
		options.Policies, options.Instancetypes, options.Namespaces = o.Policies, o.Instancetypes, o.Approvals
	}
	if o.Exceptions != nil {
		options.Exceptions = o.Exceptions
	}
	audits, err := audit.New(options)
	if err != nil {
		return nil, err
	}
	return running, audits.SetupWithManager(mgr)
}
