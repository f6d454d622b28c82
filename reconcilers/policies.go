package reconcilers

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vmstencil/stencil/internal/powers"
	"github.com/vmstencil/stencil/reconcilers/exceptionstatus"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/reconcilers/policysource"
	"github.com/vmstencil/stencil/reconcilers/policystatus"
	"github.com/vmstencil/stencil/reconcilers/policywebhook"
)

// PolicyWebhooks are the settings of the webhooks of the policies; policywebhook.Options describes them.
type PolicyWebhooks struct {
	// Configuration is empty if Stencil does not manage the webhooks.
	Configuration string
	Reference     string
	BundleManaged bool
	Settings      policywebhook.Settings
}

// setupPolicies adds the reconcilers of the policies' webhooks and statuses, and of the statuses of exceptions.
func setupPolicies(mgr manager.Manager, o Options) error {
	var routes policystatus.Routes
	if o.PolicyWebhooks.Configuration != "" {
		webhooks, err := policywebhook.New(policywebhook.Options{
			Configuration: o.PolicyWebhooks.Configuration,
			Reference:     o.PolicyWebhooks.Reference,
			BundleManaged: o.PolicyWebhooks.BundleManaged,
			Settings:      o.PolicyWebhooks.Settings,
			Policies:      o.Policies,
			Client:        mgr.GetClient(),
			Recorder:      mgr.GetEventRecorder("stencil-policy-webhook"),
			Registerer:    o.Registerer,
		})
		if err != nil {
			return err
		}
		if err := webhooks.SetupWithManager(mgr); err != nil {
			return err
		}
		routes = webhooks
	}
	statuses := policystatus.New(policystatus.Options{
		Policies: o.Policies,
		Routes:   routes,
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("stencil-policy-status"),
	})
	if err := statuses.SetupWithManager(mgr); err != nil {
		return err
	}
	writer, err := statuswriter.New(mgr.GetConfig())
	if err != nil {
		return err
	}
	exceptions := exceptionstatus.New(exceptionstatus.Options{Exceptions: o.Exceptions, Policies: o.Policies, Statuses: writer})
	if err := exceptions.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := setupPolicySources(mgr, o, writer); err != nil {
		return err
	}
	reporter := policystatus.NewReporter(policystatus.ReporterOptions{
		Name:     o.Replica,
		Policies: o.Policies,
		Client:   mgr.GetClient(),
		Logger:   mgr.GetLogger().WithName("policy-statistics"),
		Interval: o.PolicyStatisticsInterval,
	})
	if err := mgr.Add(reporter); err != nil {
		return fmt.Errorf("adding the reporter of the policies' statistics: %w", err)
	}
	return nil
}

// setupPolicySources adds the reconciler that applies the policies of OCI artifacts.
func setupPolicySources(mgr manager.Manager, o Options, statuses *statuswriter.Writer) error {
	var account client.Client
	if o.PolicySourceAccount != "" {
		var err error
		if account, err = client.New(powers.As(mgr.GetConfig(), o.PolicySourceAccount), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}); err != nil {
			return fmt.Errorf("making the client that applies policies of sources: %w", err)
		}
	}
	sources, err := policysource.New(policysource.Options{
		Namespace:       o.Namespace,
		Reader:          mgr.GetAPIReader(),
		Account:         account,
		AllowedNetworks: o.PolicySourceNetworks,
		ClusterNetworks: o.ClusterNetworks,
		Statuses:        statuses,
		Recorder:        mgr.GetEventRecorder("stencil-policy-source"),
		Registerer:      o.Registerer,
	})
	if err != nil {
		return err
	}
	return sources.SetupWithManager(mgr)
}
