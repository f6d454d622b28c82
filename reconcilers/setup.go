package reconcilers

import (
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	approvalcache "github.com/vmstencil/stencil/cache/approvals"
	diskcache "github.com/vmstencil/stencil/cache/disks"
	exceptioncache "github.com/vmstencil/stencil/cache/exceptions"
	instancetypecache "github.com/vmstencil/stencil/cache/instancetypes"
	"github.com/vmstencil/stencil/cache/objectkeys"
	policycache "github.com/vmstencil/stencil/cache/policies"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/internal/powers"
	"github.com/vmstencil/stencil/reconcilers/audit/observed"
	"github.com/vmstencil/stencil/reconcilers/capture"
	"github.com/vmstencil/stencil/reconcilers/compliance"
	"github.com/vmstencil/stencil/reconcilers/goldenimage"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/lending"
	"github.com/vmstencil/stencil/reconcilers/objects"
	"github.com/vmstencil/stencil/reconcilers/policylibrary"
	"github.com/vmstencil/stencil/reconcilers/preflight"
	"github.com/vmstencil/stencil/reconcilers/proofs"
	"github.com/vmstencil/stencil/reconcilers/readiness"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
	"github.com/vmstencil/stencil/reconcilers/revisions"
	"github.com/vmstencil/stencil/reconcilers/selfprotection"
	"github.com/vmstencil/stencil/reconcilers/transfer"
)

// Options are the dependencies and settings of the reconcilers.
type Options struct {
	// Namespace is Stencil's own namespace, which no approval selects.
	Namespace string
	// Registerer receives the metrics.
	Registerer prometheus.Registerer

	Templates *templatecache.Cache
	// Policies, with Instancetypes and Approvals, are for the evaluation of policies. SetupApprovals does not require them.
	Policies      *policycache.Cache
	Exceptions    *exceptioncache.Cache
	Instancetypes *instancetypecache.Cache
	Approvals     *approvalcache.Cache
	// Disks is required if DiskAccount is set.
	Disks *diskcache.Cache

	// ExemptNames are the configured names of exempt users.
	ExemptNames exemption.Names
	// ExemptBinding is the name of the ClusterRoleBinding that exempts controllers of KubeVirt and CDI. If empty, none is
	// written.
	ExemptBinding string

	Audit Audit
	// DiskAccount is the username under which disks that templates lend are created. If empty, none are.
	DiskAccount string
	// RevisionAccount is the username under which stored instance types are replaced. If empty, they are only reported.
	RevisionAccount string
	// ImageAccount is the username as which golden images are kept fresh, in ImageNamespaces. If empty, none are. ImageNetworks are the private
	// networks in which their sources may be.
	ImageAccount    string
	ImageNamespaces []string
	ImageNetworks   []netip.Prefix
	// PolicySourceAccount is the username as which policies of sources are applied. If empty, none are. PolicySourceNetworks are the private networks in
	// which their registries may be.
	PolicySourceAccount  string
	PolicySourceNetworks []netip.Prefix
	// ClusterNetworks are networks of the cluster, to which no source is connected.
	ClusterNetworks []netip.Prefix
	Transfers       Transfers
	// ObjectAccount is the username under which objects of templates besides the VirtualMachine are created. If empty, none are.
	ObjectAccount string
	// ObjectKeys is required if ObjectAccount is set. ObjectKeysSecret is its Secret.
	ObjectKeys       *objectkeys.Cache
	ObjectKeysSecret types.NamespacedName
	// ReadinessDryRun enables dry runs of the VirtualMachine of every template.
	ReadinessDryRun bool
	// Populators are further kinds of objects whose readiness is read: those from which volume populators fill claims.
	Populators []sources.Populator

	PolicyWebhooks PolicyWebhooks
	// Replica is the name under which this replica reports the statistics of policies.
	Replica string
	// PolicyStatisticsInterval is the minimum time between two writes of a replica's counters of a policy.
	PolicyStatisticsInterval time.Duration

	// PolicyLibrary is the name of the ConfigMap with the policies to apply. If empty, none are applied.
	PolicyLibrary string
	// Release is Stencil's Helm release, NAMESPACE/NAME. If empty, the installation is not checked. InstallationInterval is the time between two checks.
	Release              string
	InstallationInterval time.Duration
	// TemplateAPI is the component that serves the API of templates. Captures and the condition Ready of templates are those of External.
	TemplateAPI installation.TemplateAPI
	// CaptureInstancetype is how requests without an instancetype capture that; Keep if empty.
	CaptureInstancetype v1beta1.CaptureInstancetype
	// StrictSource requires for captures within a namespace what a copy by hand takes.
	StrictSource bool
	// DefaultsWebhook reports whether defaults are filled in, by a webhook behind which no other should be.
	DefaultsWebhook bool
	// ProtectedObjects is the name of the ConfigMap with the objects to restore, or ProtectedObjectsRole that of a ClusterRole. If both are empty, none
	// are restored.
	ProtectedObjects, ProtectedObjectsRole string
	// ProtectedObjectsTrust is the name of the ValidatingWebhookConfiguration with the caBundle of these objects.
	ProtectedObjectsTrust string
}

// Transfers are the settings of imports and exports; transfer.Options describes them. Without an Account there are none.
type Transfers struct {
	Account, KeySecret string
	Settings           transfer.Settings
}

// Audit are the settings of the audit; audit.Options describes them.
type Audit struct {
	// Interval is also the time between two checks of all templates against the policies.
	Interval        time.Duration
	ReportsInterval time.Duration
	ChangeDelay     time.Duration
	Additions       *approval.Additions
	LauncherImages  []string
	Controllers     []string
	OpenEntryPoints []string
	WritableKeys    []string
}

// Setup adds the reconcilers that the leader runs, except for the one of caBundles, which belongs to the source of
// certificates. The caller adds the caches.
func Setup(mgr manager.Manager, o Options) error {
	covered, running, err := setupApprovals(mgr, o)
	if err != nil {
		return err
	}
	checked, err := setupCompliance(mgr, o)
	if err != nil {
		return err
	}
	if err := setupProofs(mgr, o, covered); err != nil {
		return err
	}
	dependents, err := setupReadiness(mgr, o, checked.Unevaluated, covered)
	if err != nil {
		return err
	}
	if err := setupPolicies(mgr, o); err != nil {
		return err
	}
	if err := setupCapture(mgr, o); err != nil {
		return err
	}
	if err := setupTransfers(mgr, o); err != nil {
		return err
	}
	if err := setupLending(mgr, o); err != nil {
		return err
	}
	if err := setupObjects(mgr, o); err != nil {
		return err
	}
	if err := setupGoldenImages(mgr, o, dependents, running); err != nil {
		return err
	}
	if err := setupRevisions(mgr, o); err != nil {
		return err
	}
	if o.PolicyLibrary != "" {
		library := policylibrary.New(policylibrary.Options{
			ConfigMap: types.NamespacedName{Namespace: o.Namespace, Name: o.PolicyLibrary},
			Reader:    mgr.GetAPIReader(),
			Client:    mgr.GetClient(),
			Recorder:  mgr.GetEventRecorder("stencil-policy-library"),
		})
		if err := library.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if o.Release != "" {
		check, err := preflight.New(preflight.Options{
			Config:      mgr.GetConfig(),
			Release:     o.Release,
			TemplateAPI: o.TemplateAPI,
			Interval:    o.InstallationInterval,
			Webhooks:    o.DefaultsWebhook,
			Recorder:    mgr.GetEventRecorder("stencil-installation"),
			Registerer:  o.Registerer,
		})
		if err != nil {
			return err
		}
		if err := check.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if o.ProtectedObjects == "" && o.ProtectedObjectsRole == "" {
		return nil
	}
	protection, err := selfprotection.New(selfprotection.Options{
		ConfigMap:   types.NamespacedName{Namespace: o.Namespace, Name: o.ProtectedObjects},
		ClusterRole: o.ProtectedObjectsRole,
		Trust:       o.ProtectedObjectsTrust,
		Reader:      mgr.GetAPIReader(),
		Client:      mgr.GetClient(),
		Recorder:    mgr.GetEventRecorder("stencil-self-protection"),
		Registerer:  o.Registerer,
	})
	if err != nil {
		return err
	}
	return protection.SetupWithManager(mgr)
}

// setupCompliance adds the reconciler that checks templates against the policies.
func setupCompliance(mgr manager.Manager, o Options) (*compliance.Reconciler, error) {
	templates, err := compliance.New(compliance.Options{
		Config:        mgr.GetConfig(),
		Templates:     o.Templates,
		Policies:      o.Policies,
		Instancetypes: o.Instancetypes,
		Namespaces:    o.Approvals,
		Registerer:    o.Registerer,
		Interval:      o.Audit.Interval,
	})
	if err != nil {
		return nil, err
	}
	return templates, templates.SetupWithManager(mgr)
}

// setupProofs adds the reconciler that decides the policies for all values of the templates.
func setupProofs(mgr manager.Manager, o Options, covered *coverage.Watch) error {
	decided, err := proofs.New(proofs.Options{
		Config:        mgr.GetConfig(),
		Templates:     o.Templates,
		Policies:      o.Policies,
		Instancetypes: o.Instancetypes,
		Approvals:     covered,
		Namespaces:    o.Approvals,
		Interval:      o.Audit.Interval,
	})
	if err != nil {
		return err
	}
	return decided.SetupWithManager(mgr, covered)
}

// setupReadiness adds the reconciler that reports whether templates are usable, and returns what they depend on.
func setupReadiness(mgr manager.Manager, o Options, unevaluated func(*templatecache.Template) bool, covered *coverage.Watch) (*readiness.Dependents, error) {
	return readiness.SetupWithManager(mgr, readiness.Options{
		Unevaluated: unevaluated,
		Approvals:   covered,
		Config:      mgr.GetConfig(),
		Templates:   o.Templates,
		Recorder:    mgr.GetEventRecorder("stencil-readiness"),
		Registerer:  o.Registerer,
		Lending:     o.DiskAccount != "",
		DryRun:      o.ReadinessDryRun,
		Populators:  o.Populators,
		External:    o.TemplateAPI == installation.External,
	})
}

// setupCapture adds the reconciler that captures VirtualMachines as templates.
func setupCapture(mgr manager.Manager, o Options) error {
	if o.TemplateAPI == installation.External {
		return nil
	}
	cluster, err := capture.NewCluster(mgr.GetConfig())
	if err != nil {
		return err
	}
	permissions, err := powers.Checker(mgr.GetConfig())
	if err != nil {
		return err
	}
	captures, err := capture.New(capture.Options{
		Cluster:      cluster,
		Permissions:  permissions,
		StrictSource: o.StrictSource,
		Recorder:     mgr.GetEventRecorder("stencil-capture"),
		Registerer:   o.Registerer,
		Instancetype: o.CaptureInstancetype,
	})
	if err != nil {
		return err
	}
	return captures.SetupWithManager(mgr)
}

// setupTransfers adds the reconcilers that import and export templates.
func setupTransfers(mgr manager.Manager, o Options) error {
	if o.Transfers.Account == "" || o.TemplateAPI == installation.External {
		return nil
	}
	return transfer.SetupWithManager(mgr, transfer.Options{
		Config:     mgr.GetConfig(),
		Account:    o.Transfers.Account,
		KeySecret:  o.Transfers.KeySecret,
		Settings:   o.Transfers.Settings,
		Recorder:   mgr.GetEventRecorder("stencil-transfers"),
		Registerer: o.Registerer,
	})
}

// setupLending adds the reconciler that creates the disks that templates lend.
func setupLending(mgr manager.Manager, o Options) error {
	if o.DiskAccount == "" {
		return nil
	}
	loans, err := lending.New(lending.Options{
		Config:     mgr.GetConfig(),
		Account:    o.DiskAccount,
		Templates:  o.Templates,
		Disks:      o.Disks,
		Recorder:   mgr.GetEventRecorder("stencil-disks"),
		Registerer: o.Registerer,
		Logger:     mgr.GetLogger().WithName("lending"),
	})
	if err != nil {
		return err
	}
	return loans.SetupWithManager(mgr)
}

// setupObjects adds the reconcilers that create the objects of templates besides the VirtualMachine, and make the keys that encrypt them until
// then.
func setupObjects(mgr manager.Manager, o Options) error {
	if o.ObjectAccount == "" {
		return nil
	}
	created, err := objects.New(objects.Options{
		Config:     mgr.GetConfig(),
		Account:    o.ObjectAccount,
		Keys:       o.ObjectKeys,
		Recorder:   mgr.GetEventRecorder("stencil-objects"),
		Registerer: o.Registerer,
		Logger:     mgr.GetLogger().WithName("objects"),
	})
	if err != nil {
		return err
	}
	return created.SetupWithManager(mgr, o.ObjectKeysSecret)
}

// setupRevisions adds the reconciler that reports and migrates stored instance types.
func setupRevisions(mgr manager.Manager, o Options) error {
	stored, err := revisions.New(revisions.Options{
		Config:     mgr.GetConfig(),
		Account:    o.RevisionAccount,
		Recorder:   mgr.GetEventRecorder("stencil-revisions"),
		Registerer: o.Registerer,
	})
	if err != nil {
		return err
	}
	return stored.SetupWithManager(mgr)
}

// setupGoldenImages adds the reconciler that keeps golden images fresh.
func setupGoldenImages(mgr manager.Manager, o Options, dependents *readiness.Dependents, running *observed.Watch) error {
	if o.ImageAccount == "" {
		return nil
	}
	images, err := goldenimage.New(goldenimage.Options{
		Config:          mgr.GetConfig(),
		Account:         o.ImageAccount,
		Namespaces:      o.ImageNamespaces,
		AllowedNetworks: o.ImageNetworks,
		ClusterNetworks: o.ClusterNetworks,
		Templates:       o.Templates,
		DryRun:          o.ReadinessDryRun,
		Dependents:      dependents,
		VirtualMachines: running,
		Recorder:        mgr.GetEventRecorder("stencil-golden-images"),
		Registerer:      o.Registerer,
		Logger:          mgr.GetLogger().WithName("golden-images"),
	})
	if err != nil {
		return err
	}
	return images.SetupWithManager(mgr)
}
