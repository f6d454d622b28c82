package main

import (
	"flag"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/installation"
	program "github.com/vmstencil/stencil/internal/server"
)

// versionFlag is the one flag that is not a setting.
const versionFlag = "version"

// options are the settings of the process.
type options struct {
	version bool
	// uninstall prepares the cluster for the removal of Stencil and does nothing else.
	uninstall bool
	// uninstalled deletes the objects of failed revisions of an uninstalled release and does nothing else.
	uninstalled bool

	webhookBindAddress     string
	metricsBindAddress     string
	healthProbeBindAddress string
	pprofBindAddress       string
	webhookHTTP2           bool
	webhookClientCAFile    string
	webhookClientNames     program.List
	shutdownDelay          time.Duration
	shutdownTimeout        time.Duration

	leaderElect             bool
	leaderElectionID        string
	leaderElectionNamespace string

	certificates program.Certificates
	tls          program.TLS
	// metricsCertPath is the directory of the serving certificate of the metrics. If empty, they are served over plain HTTP.
	metricsCertPath       string
	webhookConfigurations program.List
	apiServices           program.List

	exemptUsers program.List
	// exemptBinding is the name of the ClusterRoleBinding that exempts controllers of KubeVirt and CDI.
	exemptBinding string
	// apiserverUser is the user as which stencil-apiserver creates VirtualMachines on behalf of others.
	apiserverUser string
	auditInterval time.Duration
	// diskAccount is the user as which disks that templates lend are created.
	diskAccount string
	// revisionAccount is the user as which stored instance types are replaced.
	revisionAccount string
	transfers       transferOptions
	// imageAccount is the user as which golden images are kept fresh, in imageNamespaces and from imageNetworks.
	imageAccount    string
	imageNamespaces program.List
	imageNetworks   program.List
	// policySourceAccount is the user as which policies of sources are applied, from policySourceNetworks.
	policySourceAccount  string
	policySourceNetworks program.List
	// clusterNetworks are networks of the cluster, which sources are not in.
	clusterNetworks program.List
	// objectAccount is the user as which objects of templates besides the VirtualMachine are created. objectResources are their resources, and
	// objectKeys is the name of the Secret with the keys that encrypt them until then.
	objectAccount   string
	objectResources program.List
	// lentObjectResources are the resources that templates may lend the right to create.
	lentObjectResources program.List
	objectKeys          string
	// readinessDryRun enables trying templates in dry runs.
	readinessDryRun bool
	// populators are the kinds of volume populators whose objects are read.
	populators program.List
	// decisionLogSample is the fraction of policy decisions that is logged.
	decisionLogSample float64
	clusterAdditions  program.List
	writableKeys      program.List
	// launcherImages, ownerGroups and openEntryPoints are excluded from audit reports.
	launcherImages  program.List
	ownerGroups     program.List
	openEntryPoints program.List
	// policyWebhooks is the name of the webhook configuration of the policies. Its caBundle is copied from
	// policyWebhooksTrust.
	policyWebhooks           string
	policyWebhooksTrust      string
	policyWebhooksAddress    string
	policyWebhooksTimeout    time.Duration
	policyStatisticsInterval time.Duration
	// replica is the name of the pod.
	replica string
	// protectedObjects is the name of the ConfigMap with the objects to restore, or of a ClusterRole.
	protectedObjects string
	// protectedObjectsTrust is the name of the webhook configuration with the caBundle of these objects.
	protectedObjectsTrust string
	// policyLibrary is the name of the ConfigMap with the policies to apply.
	policyLibrary string
	// release is the Helm release, NAMESPACE/NAME, whose installation is checked every installationInterval.
	release              string
	installationInterval time.Duration
	// captureInstancetype of requests without one: a v1beta1.CaptureInstancetype.
	captureInstancetype string
	// requestsStrictSource requires for captures within a namespace what a copy by hand takes.
	requestsStrictSource bool
	// templateAPI is the component that serves the API of templates: an installation.TemplateAPI.
	templateAPI string
	// namespace is the namespace of the manager.
	namespace string

	defaulting program.Defaulting
	// defaultingFailurePolicy is what happens to VirtualMachines while the defaulter does not respond.
	defaultingFailurePolicy string

	kubeAPIQPS   float64
	kubeAPIBurst int

	zap zap.Options
}

// bind registers every flag, with its default.
func (o *options) bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.version, versionFlag, false,
		"Print the version and exit.")
	flags.BoolVar(&o.uninstalled, "uninstalled", false,
		"Delete the objects of --release that failed revisions have created and Helm does not delete, and exit. The hook of the chart runs it after an uninstallation.")
	flags.BoolVar(&o.uninstall, "uninstall", false,
		"Prepare the cluster for the removal of Stencil and exit: stop the leader, end captures, and remove finalizers. The hook of the chart runs it before an uninstallation.")

	flags.StringVar(&o.webhookBindAddress, "webhook-bind-address", ":9443",
		"Address on which the webhooks are served over HTTPS.")
	flags.StringVar(&o.metricsBindAddress, "metrics-bind-address", ":8080",
		"Address on which Prometheus metrics are served at /metrics; 0 serves none.")
	flags.StringVar(&o.metricsCertPath, "metrics-cert-path", "",
		"Directory of tls.crt and tls.key with which the metrics are served over HTTPS. They are read again when they change. If empty, the metrics are served over plain HTTP.")
	flags.StringVar(&o.healthProbeBindAddress, "health-probe-bind-address", ":8081",
		"Address of /healthz and /readyz, plain HTTP; 0 serves none.")
	flags.StringVar(&o.pprofBindAddress, "pprof-bind-address", "",
		"Address on which Go profiles are served at /debug/pprof/; empty serves none.")
	flags.BoolVar(&o.webhookHTTP2, "webhook-http2", false,
		"Offer HTTP/2 to the callers of webhooks.")
	flags.StringVar(&o.webhookClientCAFile, "webhook-client-ca-file", "",
		"PEM file of the authorities that sign the client certificates of webhook callers. It is read again for every connection. If empty, client certificates are not required.")
	flags.Var(&o.webhookClientNames, "webhook-client-names",
		"Common names, separated by commas, that these client certificates may have. If empty, any name is accepted.")
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 10*time.Second,
		"How long to continue serving, not ready, after SIGTERM.")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 30*time.Second,
		"How long webhook calls in flight may take after that.")

	flags.BoolVar(&o.leaderElect, "leader-elect", true,
		"Run the reconcilers on an elected leader only. Webhooks are served by every replica in any case.")
	flags.StringVar(&o.leaderElectionID, "leader-election-id", "stencil-manager",
		"Name of the Lease of the leader.")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"Namespace of the Lease; empty means the manager's own.")

	o.certificates.Bind(flags)
	flags.Func("webhook-cert-path", "Short for --certificate-source=files and --certificate-directory, as virt-operator gives it to the controller of its template component.", func(directory string) error {
		o.certificates.UseFiles(directory)
		return nil
	})
	o.tls.Bind(flags)
	flags.Var(&o.webhookConfigurations, "webhook-configurations",
		"Webhook configurations, separated by commas, to which the caBundle is written (source authority): mutating/NAME, validating/NAME, or NAME for both kinds.")
	flags.Var(&o.apiServices, "api-services",
		"APIServices of stencil-apiserver, separated by commas, to which the caBundle is written likewise: apiservice/NAME.")

	flags.Var(&o.exemptUsers, "exempt-users",
		"Service accounts, separated by commas, that are exempt from approvals: names of those of KubeVirt and CDI, which are exempt where these are installed, and full names, system:serviceaccount:NAMESPACE:NAME, in kube-system, in the manager's own namespace and where KubeVirt and CDI are installed.")
	flags.StringVar(&o.exemptBinding, "exempt-binding", "",
		"Name of the ClusterRoleBinding that exempts the service accounts of KubeVirt and CDI, whose subjects the manager writes. If empty, none of them is exempt.")

	flags.StringVar(&o.diskAccount, "disk-account", "",
		"Full name of the service account as which the manager creates the disks that templates lend; it must be permitted to impersonate it. If empty, no disk is lent.")
	flags.StringVar(&o.revisionAccount, "revision-account", "",
		"Full name of the service account as which the manager replaces stored instance types; it must be permitted to impersonate it. If empty, they are only reported.")
	flags.StringVar(&o.imageAccount, "image-account", "",
		"Full name of the service account as which the manager keeps golden images fresh; it must be permitted to impersonate it. If empty, no GoldenImage is reconciled.")
	flags.Var(&o.imageNamespaces, "image-namespaces",
		"Namespaces, separated by commas, in which this account has permissions; * stands for all. GoldenImages in others are not reconciled.")
	flags.Var(&o.imageNetworks, "image-networks",
		"Private networks, separated by commas, such as 10.0.0.0/8, in which sources of golden images may be. Sources with other addresses that are not public are denied.")
	flags.StringVar(&o.policySourceAccount, "policy-source-account", "",
		"Full name of the service account as which the manager applies policies of VirtualMachinePolicySources; it must be permitted to impersonate it. If empty, no source is reconciled.")
	flags.Var(&o.policySourceNetworks, "policy-source-networks",
		"Private networks, separated by commas, such as 10.0.0.0/8, in which registries of policies may be. Registries with other addresses that are not public are denied.")
	flags.Var(&o.clusterNetworks, "cluster-networks",
		"Networks of the cluster's nodes, pods and Services, separated by commas, such as 10.96.0.0/12. No source is connected to in them, unless a smaller network is allowed.")
	o.transfers.bind(flags)
	flags.StringVar(&o.objectAccount, "object-account", "",
		"Full name of the service account as which the manager creates the objects that templates have besides the VirtualMachine; it must be permitted to impersonate it. If empty, VirtualMachines of templates with objects are denied.")
	flags.Var(&o.objectResources, "object-resources",
		"Resources, separated by commas, of these objects, such as secrets and networkpolicies.networking.k8s.io. Templates with others are denied.")
	flags.Var(&o.lentObjectResources, "lent-object-resources",
		"Resources, separated by commas, of these objects that templates may create, by rights: Template, for users without the right to create them.")
	flags.StringVar(&o.objectKeys, "object-keys-secret", "stencil-object-keys",
		"Secret in the manager's own namespace that holds the keys with which these objects are encrypted until they are created. The manager makes it.")
	flags.StringVar(&o.apiserverUser, "apiserver-user", "",
		"Full name of the user as which stencil-apiserver creates VirtualMachines for other users: its requests are evaluated as those of the users that they name. If empty, delegation is disabled.")

	flags.BoolVar(&o.readinessDryRun, "readiness-dry-run", false,
		"Create the VirtualMachine of every template's defaults in a dry run, and report on the template whether it is accepted.")
	flags.Var(&o.populators, "populators",
		"Kinds from whose objects volume populators fill disks, separated by commas, each as KIND.VERSION.GROUP/RESOURCE: templates that refer to such objects are ready when the objects are.")
	flags.DurationVar(&o.auditInterval, "audit-interval", 10*time.Minute,
		"How often every governed VirtualMachine is checked against its approvals when nothing changes.")
	flags.Var(&o.clusterAdditions, "cluster-additions",
		"Paths in the spec of VirtualMachines, separated by commas and in the syntax of overrides, to which other admission webhooks and controllers of this cluster add values. The paths of KubeVirt are built in.")
	flags.Var(&o.writableKeys, "writable-instance-keys",
		"Labels and annotations, separated by commas, that others may write to VirtualMachineInstances; one that ends in a slash permits a prefix. The audit does not report these.")
	flags.Var(&o.launcherImages, "launcher-images",
		"Repositories of images, separated by commas and without tag, from which containers in the pods of VirtualMachines may come in addition to KubeVirt's: those that a mesh adds, or the previous repository of KubeVirt's launcher. The audit does not report these.")
	flags.Var(&o.ownerGroups, "owner-groups",
		"API groups, separated by commas, with controllers that own VirtualMachines or set finalizers on them, in addition to KubeVirt's. The audit does not report these.")
	flags.Var(&o.openEntryPoints, "open-entry-points",
		"Names, separated by commas, of the chart's values below entryPoints that are Open. The audit does not report what these allow.")
	flags.Float64Var(&o.decisionLogSample, "decision-log-sample", 0,
		"Fraction of the policy decisions that is logged, with masked input, from 0 (none) to 1 (all).")
	flags.StringVar(&o.policyWebhooks, "policy-webhooks", "",
		"ValidatingWebhookConfiguration to which the webhooks that policies need are written. If empty, none are written.")
	flags.StringVar(&o.policyWebhooksTrust, "policy-webhooks-trust", "",
		"ValidatingWebhookConfiguration from which these webhooks get their caBundle.")
	flags.StringVar(&o.policyWebhooksAddress, "policy-webhooks-address", "",
		"Where API servers reach these webhooks: an https URL without their path, or a Service as NAMESPACE/NAME.")
	flags.DurationVar(&o.policyWebhooksTimeout, "policy-webhooks-timeout", 10*time.Second,
		"Timeout of API servers for these webhooks, in whole seconds up to 30s.")
	flags.DurationVar(&o.policyStatisticsInterval, "policy-statistics-interval", time.Minute,
		"Minimum interval between two writes of a replica's counters of a policy to its status.")
	flags.StringVar(&o.protectedObjects, "protected-objects", "",
		"ConfigMap in the manager's own namespace that holds the manifests of webhook configurations and policies to restore when they are changed or deleted, or clusterrole/NAME of a ClusterRole that holds them in an annotation; empty restores none.")
	flags.StringVar(&o.protectedObjectsTrust, "protected-objects-trust", "",
		"ValidatingWebhookConfiguration from which webhooks among these manifests get their caBundle. If empty, another component writes it.")
	flags.StringVar(&o.policyLibrary, "policy-library", "",
		"ConfigMap in the manager's own namespace that holds the policies of the library that are applied, and deleted when they are not in it any more; empty applies none.")
	flags.StringVar(&o.release, "release", "",
		"NAMESPACE/NAME of the Helm release. The leader reports what its installation cannot stay beside, above all KubeVirt's own template component; empty reports nothing.")
	flags.DurationVar(&o.installationInterval, "installation-interval", time.Minute,
		"How often the leader checks that.")
	flags.StringVar(&o.templateAPI, "template-api", string(installation.Own),
		"Component that serves the API template.kubevirt.io: Own for Stencil, External for KubeVirt's own template component. With External the manager captures nothing, and reports the readiness of templates without the fields and the condition Ready that are not its own.")

	flags.StringVar(&o.captureInstancetype, "capture-instancetype", string(v1beta1.CaptureInstancetypeKeep),
		"How a VirtualMachineTemplateRequest that does not say it captures the instance type and the preference: Keep retains the names of cluster-wide ones, with the parameter INSTANCETYPE, and expands others; Expand writes the values of all into the template.")

	flags.BoolVar(&o.requestsStrictSource, "requests-strict-source", true,
		"Require of the creator of a VirtualMachineTemplateRequest, also while it is in progress, permission to read a VirtualMachine of the same namespace and to create VirtualMachineSnapshots.")

	o.defaulting.Bind(flags)
	flags.StringVar(&o.defaultingFailurePolicy, "defaulting-failure-policy", failurePolicyIgnore,
		"What happens to a VirtualMachine while the defaulter does not respond: Ignore admits it with a warning, Fail denies it.")

	flags.Float64Var(&o.kubeAPIQPS, "kube-api-qps", -1,
		"Requests per second to the API server; negative means no limit but the API server's own.")
	flags.IntVar(&o.kubeAPIBurst, "kube-api-burst", 100,
		"Requests to the API server above the rate for a short time; without meaning when --kube-api-qps is negative.")

	config.RegisterFlags(flags)
	// The text of controller-runtime omits when the flag is needed.
	flags.Lookup(config.KubeconfigFlagName).Usage = "Kubeconfig file with which to reach the API server; needed outside a cluster only."
	program.BindLogging(flags, &o.zap)
}
