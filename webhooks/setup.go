package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	approvalcache "github.com/vmstencil/stencil/cache/approvals"
	diskcache "github.com/vmstencil/stencil/cache/disks"
	exceptioncache "github.com/vmstencil/stencil/cache/exceptions"
	exemptioncache "github.com/vmstencil/stencil/cache/exemptions"
	instancetypecache "github.com/vmstencil/stencil/cache/instancetypes"
	kubevirtconfig "github.com/vmstencil/stencil/cache/kubevirt"
	"github.com/vmstencil/stencil/cache/macaddresses"
	"github.com/vmstencil/stencil/cache/objectkeys"
	policycache "github.com/vmstencil/stencil/cache/policies"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
	"github.com/vmstencil/stencil/installation"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/guestdefaults"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/internal/powers"
	policyschema "github.com/vmstencil/stencil/rego/schema"
	"github.com/vmstencil/stencil/webhooks/approvals"
	"github.com/vmstencil/stencil/webhooks/defaults"
	"github.com/vmstencil/stencil/webhooks/instances"
	"github.com/vmstencil/stencil/webhooks/internal/delegated"
	"github.com/vmstencil/stencil/webhooks/internal/policyeval"
	"github.com/vmstencil/stencil/webhooks/namespaces"
	"github.com/vmstencil/stencil/webhooks/policies"
	"github.com/vmstencil/stencil/webhooks/preview"
	"github.com/vmstencil/stencil/webhooks/render"
	"github.com/vmstencil/stencil/webhooks/requests"
	"github.com/vmstencil/stencil/webhooks/serving"
	"github.com/vmstencil/stencil/webhooks/templates"
	"github.com/vmstencil/stencil/webhooks/validate"
	"github.com/vmstencil/stencil/webhooks/writers"
)

// Options are the dependencies and settings of the webhooks.
type Options struct {
	// Server serves the webhooks.
	Server *serving.Server
	// Registerer receives the metrics.
	Registerer prometheus.Registerer

	Templates     *templatecache.Cache
	Approvals     *approvalcache.Cache
	Instancetypes *instancetypecache.Cache
	Policies      *policycache.Cache
	Exceptions    *exceptioncache.Cache
	Exempt        *exemptioncache.Cache
	Disks         *diskcache.Cache
	// KubeVirt is required for defaulting.
	KubeVirt *kubevirtconfig.Cache
	// Addresses is required if defaulting generates MAC addresses.
	Addresses *macaddresses.Cache

	// TemplateAPI is the component that defines templates. Extensions are restored if it is Stencil: the other definition has no fields for them.
	TemplateAPI installation.TemplateAPI
	// Namespace is Stencil's own namespace, which no approval selects.
	Namespace string
	// APIServerUser is the user as which stencil-apiserver creates VirtualMachines on behalf of others. If empty, delegation
	// is disabled.
	APIServerUser string
	// DecisionLogSample is the fraction of policy decisions that is logged, from 0 to 1.
	DecisionLogSample float64
	// Schemas returns the schemas of the objects of the cluster.
	Schemas func() *policyschema.Schemas
	// Additions are the places at which the cluster adds to VirtualMachines.
	Additions *approval.Additions
	// Lending reports that the manager creates the disks that templates lend.
	Lending bool
	// ObjectKeys encrypt the objects of templates besides the VirtualMachine, of the kinds of ObjectResources, until they are created. If nil,
	// VirtualMachines of such templates are denied.
	ObjectKeys      *objectkeys.Cache
	ObjectResources []string
	// LentObjectResources are the resources that templates may lend the right to create.
	LentObjectResources []string
	// ObjectAccount is the username under which they are created.
	ObjectAccount string
	Defaulting    Defaulting
}

// Defaulting are the settings of the webhook that calls the defaulter.
type Defaulting struct {
	// Socket is the Unix socket of the defaulter. If empty, defaulting is disabled.
	Socket string
	// Policy selects which defaults are filled in.
	Policy defaulting.Policy
	// FailClosed denies VMs while the defaulter is unavailable. If false, they are allowed with a warning.
	FailClosed bool
}

// Setup registers all webhooks with the server, and adds what they need to the manager. The caller adds the server and the
// caches.
func Setup(mgr manager.Manager, o Options) error {
	reviews, err := authorizationv1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the client of permission checks: %w", err)
	}
	permissions, err := permission.New(permission.Options{Client: reviews, Registerer: o.Registerer})
	if err != nil {
		return err
	}
	decisions, err := policyeval.NewMetrics(o.Registerer)
	if err != nil {
		return err
	}
	var pending *objects.Reader
	if o.ObjectKeys != nil {
		pending = &objects.Reader{Keys: o.ObjectKeys.Keys, Now: time.Now}
	}
	evaluator := policyeval.New(policyeval.Options{
		Policies:      o.Policies,
		Exceptions:    o.Exceptions,
		Namespaces:    o.Approvals,
		Templates:     o.Templates,
		Instancetypes: o.Instancetypes,
		Objects:       pending,
		Log:           policyeval.NewLog(mgr.GetLogger().WithName("decisions"), o.DecisionLogSample, nil),
		Metrics:       decisions,
	})
	sources, err := requests.NewAPIServer(mgr.GetConfig())
	if err != nil {
		return err
	}
	storage, err := disks.NewAPIServer(mgr.GetConfig())
	if err != nil {
		return err
	}
	others, err := attachable(mgr, o, storage)
	if err != nil {
		return err
	}
	server := delegation.Server(o.APIServerUser)
	checked, written := templates.Options{}, admission.Handler(writers.New(o.Namespace))
	if o.TemplateAPI == installation.Own {
		checked.Approvals, written = o.Approvals, templates.NewRestoring(written)
	}
	virtualMachines := validate.New(validate.Options{
		Templates:   o.Templates,
		Permissions: permissions,
		Approvals:   o.Approvals,
		Policies:    evaluator,
		Sizes:       o.Instancetypes,
		Disks:       diskcache.Reader{APIServer: storage, Cache: o.Disks},
		Objects:     pending,
		Exempt:      o.Exempt,
		Additions:   o.Additions,
	})
	for _, webhook := range []serving.Webhook{
		{
			Name: "render",
			Path: "/mutate-virtualmachine-render",
			Handler: render.New(render.Options{
				Templates:   o.Templates,
				Permissions: permissions,
				Approvals:   o.Approvals,
				Policies:    evaluator,
				Additions:   o.Additions,
				Exempt:      o.Exempt,
				Server:      server,
				AwaitState:  o.Approvals.AwaitState,
				Lending:     o.Lending,
				Objects:     others,
			}),
		},
		{
			Name:    "machines",
			Path:    "/validate-virtualmachine",
			Handler: delegated.New(server, virtualMachines),
		},
		{
			Name:    "instances",
			Path:    "/validate-virtualmachineinstance",
			Handler: instances.New(instances.Options{Approvals: o.Approvals, Disks: storage}),
		},
		{
			Name:    "preview",
			Path:    "/preview-virtualmachine",
			Handler: delegated.New(server, preview.New(virtualMachines)),
		},
		{
			Name:    "policed",
			Path:    "/validate-policies",
			Handler: delegated.New(server, policyeval.NewHandler(evaluator)),
		},
		{
			Name:    "namespaces",
			Path:    "/mutate-namespace",
			Handler: namespaces.New(o.Approvals),
		},
		{
			Name:    "templates",
			Path:    "/validate-virtualmachinetemplate",
			Handler: templates.New(checked),
		},
		{
			Name:    "lending",
			Path:    "/mutate-virtualmachinetemplate",
			Handler: templates.NewLending(permissions),
		},
		{
			Name:    "writers",
			Path:    "/mutate-written-by",
			Handler: written,
		},
		{
			Name:    "requests",
			Path:    "/validate-virtualmachinetemplaterequest",
			Handler: requests.New(requests.Options{Templates: o.Templates, Permissions: permissions, VirtualMachines: sources}),
		},
		{
			Name:    "approvals",
			Path:    "/validate-templateapproval",
			Handler: approvals.New(approvals.Options{Templates: o.Templates, Namespaces: o.Approvals, Schemas: o.Schemas, ExcludedNamespaces: []string{o.Namespace}}),
		},
		{
			Name: "policies",
			Path: "/validate-virtualmachinepolicy",
			Handler: policies.New(policies.Options{
				Policies:    o.Policies,
				Permissions: permissions,
				Sampler: &policies.Sampler{
					VirtualMachines: storage,
					Namespaces:      o.Approvals,
					Templates:       o.Templates,
					Instancetypes:   o.Instancetypes.Cached(),
					Exceptions:      o.Exceptions,
					Clock:           clock.RealClock{},
				},
			}),
		},
	} {
		o.Server.Register(webhook)
	}
	return setupDefaults(mgr, o)
}

// attachable returns the dependencies for templates with other objects; nil if VirtualMachines of such templates are denied.
func attachable(mgr manager.Manager, o Options, storage *disks.APIServer) (*render.Objects, error) {
	if o.ObjectKeys == nil {
		return nil, nil
	}
	client, err := dynamic.NewForConfig(powers.As(mgr.GetConfig(), o.ObjectAccount))
	if err != nil {
		return nil, fmt.Errorf("making the client of objects: %w", err)
	}
	return &render.Objects{
		Kinds: objects.NewKinds(mgr.GetRESTMapper(), o.ObjectResources, o.LentObjectResources), Keys: o.ObjectKeys.Keys, Now: time.Now,
		VirtualMachine: storage.VirtualMachine,
		Try: func(ctx context.Context, resource schema.GroupVersionResource, namespace string, manifest []byte) error {
			return objects.Try(ctx, client, resource, namespace, manifest)
		},
	}, nil
}

// setupDefaults registers the webhook that calls the defaulter, and adds the observer of the defaulter.
func setupDefaults(mgr manager.Manager, o Options) error {
	webhook := serving.Webhook{Name: "defaults", Path: "/mutate-virtualmachine-defaults"}
	if o.Defaulting.Socket == "" {
		// While an upgrade switches defaulting on or off, managers without it receive requests, too.
		webhook.Handler = admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
		o.Server.Register(webhook)
		return nil
	}
	measured, err := defaults.NewMetrics(o.Registerer)
	if err != nil {
		return err
	}
	defaulter := client.New(o.Defaulting.Socket)
	if err := mgr.Add(defaults.NewObserver(defaults.ObserverOptions{
		Defaulter: defaulter,
		KubeVirt:  o.KubeVirt,
		Metrics:   measured,
		Recorder:  mgr.GetEventRecorder("stencil-defaulting"),
		Elected:   mgr.Elected(),
		Logger:    mgr.GetLogger().WithName("defaulting"),
	})); err != nil {
		return fmt.Errorf("adding the observer of the defaulter: %w", err)
	}
	options := defaults.Options{
		Filler: guestdefaults.Filler{
			Defaulter:     client.NewCachingDefaulter(measured.Timed(defaulter, clock.RealClock{}), clock.RealClock{}),
			Cluster:       o.KubeVirt,
			Instancetypes: o.Instancetypes,
			Policy:        o.Defaulting.Policy,
			Namespaces:    o.Approvals,
		},
		Approvals:  o.Approvals,
		FailClosed: o.Defaulting.FailClosed,
		Exempt:     o.Exempt,
		Metrics:    measured,
	}
	if o.Addresses != nil {
		options.Addresses = o.Addresses
	}
	webhook.Handler = defaults.New(options)
	o.Server.Register(webhook)
	return nil
}
