package main

import (
	"fmt"

	"github.com/go-logr/logr"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	approvalcache "github.com/vmstencil/stencil/cache/approvals"
	exemptioncache "github.com/vmstencil/stencil/cache/exemptions"
	instancetypecache "github.com/vmstencil/stencil/cache/instancetypes"
	kubevirtconfig "github.com/vmstencil/stencil/cache/kubevirt"
	"github.com/vmstencil/stencil/cache/macaddresses"
	policycache "github.com/vmstencil/stencil/cache/policies"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/webhooks/approvals"
	"github.com/vmstencil/stencil/webhooks/behalf"
	"github.com/vmstencil/stencil/webhooks/instances"
	"github.com/vmstencil/stencil/webhooks/namespaces"
	"github.com/vmstencil/stencil/webhooks/policies"
	"github.com/vmstencil/stencil/webhooks/policing"
	"github.com/vmstencil/stencil/webhooks/preview"
	"github.com/vmstencil/stencil/webhooks/render"
	"github.com/vmstencil/stencil/webhooks/requests"
	"github.com/vmstencil/stencil/webhooks/serving"
	"github.com/vmstencil/stencil/webhooks/templates"
	"github.com/vmstencil/stencil/webhooks/validate"
)

// caches hold the state that webhooks decide from. Every replica has its own.
type caches struct {
	templates     *templatecache.Cache
	approvals     *approvalcache.Cache
	instancetypes *instancetypecache.Cache
	policies      *policycache.Cache
	exempt        *exemptioncache.Cache
	// compiler compiles policies, both cached ones and those to be stored.
	compiler *rego.Compiler
	// kubevirt is nil without defaulting.
	kubevirt *kubevirtconfig.Cache
	// addresses is nil unless defaulting generates MAC addresses.
	addresses *macaddresses.Cache
}

// addCaches creates the caches and adds them to the manager.
func addCaches(mgr manager.Manager, o *options, logger logr.Logger) (caches, error) {
	var c caches
	var err error
	if c.templates, err = templatecache.New(templatecache.Options{
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("templatecache"),
		Registerer: metrics.Registry,
	}); err != nil {
		return c, err
	}
	if c.approvals, err = approvalcache.New(approvalcache.Options{
		Config:             mgr.GetConfig(),
		Logger:             logger.WithName("approvalcache"),
		Registerer:         metrics.Registry,
		ExcludedNamespaces: []string{o.namespace},
	}); err != nil {
		return c, err
	}
	if c.instancetypes, err = instancetypecache.New(instancetypecache.Options{
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("instancetypecache"),
		Registerer: metrics.Registry,
	}); err != nil {
		return c, err
	}
	if c.exempt, err = exemptioncache.New(exemptioncache.Options{
		Config:  mgr.GetConfig(),
		Logger:  logger.WithName("exemptions"),
		Names:   o.exemptNames(),
		Binding: o.exemptBinding,
	}); err != nil {
		return c, err
	}
	if c.compiler, err = rego.NewCompiler(); err != nil {
		return c, fmt.Errorf("making the compiler of policies: %w", err)
	}
	if c.policies, err = policycache.New(policycache.Options{
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("policycache"),
		Registerer: metrics.Registry,
		Compiler:   c.compiler,
	}); err != nil {
		return c, err
	}
	runnables := map[string]manager.Runnable{
		"template": c.templates, "approval": c.approvals, "instance type": c.instancetypes, "policy": c.policies, "exemption": c.exempt,
	}
	if o.defaultingSocket != "" {
		if c.kubevirt, err = kubevirtconfig.New(kubevirtconfig.Options{
			Config: mgr.GetConfig(),
			Logger: logger.WithName("kubevirtconfig"),
		}); err != nil {
			return c, err
		}
		runnables["KubeVirt configuration"] = c.kubevirt
	}
	if o.generatesMAC() {
		if c.addresses, err = macaddresses.New(macaddresses.Options{
			Config: mgr.GetConfig(),
			Logger: logger.WithName("macaddresses"),
		}); err != nil {
			return c, err
		}
		runnables["MAC address"] = c.addresses
	}
	for name, cache := range runnables {
		if err := mgr.Add(cache); err != nil {
			return c, fmt.Errorf("adding the %s cache: %w", name, err)
		}
	}
	return c, nil
}

// addWebhooks registers the webhooks.
func addWebhooks(mgr manager.Manager, listener *serving.Server, c caches, o *options) error {
	reviews, err := authorizationv1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the client of permission checks: %w", err)
	}
	permissions, err := permission.New(permission.Options{Client: reviews, Registerer: metrics.Registry})
	if err != nil {
		return err
	}
	decisions, err := policing.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	evaluator := policing.New(policing.Options{
		Policies:      c.policies,
		Namespaces:    c.approvals,
		Templates:     c.templates,
		Instancetypes: c.instancetypes,
		Log:           policing.NewLog(mgr.GetLogger().WithName("decisions"), o.decisionLogSample, nil),
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
	server := delegation.Server(o.apiserverUser)
	virtualMachines := validate.New(validate.Options{
		Templates: c.templates,
		Approvals: c.approvals,
		Policies:  evaluator,
		Sizes:     c.instancetypes,
		Disks:     storage,
		Exempt:    c.exempt,
	})
	for _, webhook := range []serving.Webhook{
		{
			Name: "render",
			Path: "/mutate-virtualmachine-render",
			Handler: render.New(render.Options{
				Templates:   c.templates,
				Permissions: permissions,
				Approvals:   c.approvals,
				Exempt:      c.exempt,
				Server:      server,
				AwaitState:  c.approvals.AwaitState,
			}),
		},
		{
			Name:    "machines",
			Path:    "/validate-virtualmachine",
			Handler: behalf.New(server, virtualMachines),
		},
		{
			Name:    "instances",
			Path:    "/validate-virtualmachineinstance",
			Handler: instances.New(instances.Options{Approvals: c.approvals, Disks: storage}),
		},
		{
			Name:    "preview",
			Path:    "/preview-virtualmachine",
			Handler: behalf.New(server, preview.New(virtualMachines)),
		},
		{
			Name:    "policed",
			Path:    "/validate-policies",
			Handler: behalf.New(server, policing.NewHandler(evaluator)),
		},
		{
			Name:    "namespaces",
			Path:    "/mutate-namespace",
			Handler: namespaces.New(c.approvals),
		},
		{
			Name:    "templates",
			Path:    "/validate-virtualmachinetemplate",
			Handler: templates.New(),
		},
		{
			Name:    "requests",
			Path:    "/validate-virtualmachinetemplaterequest",
			Handler: requests.New(requests.Options{Templates: c.templates, Permissions: permissions, VirtualMachines: sources}),
		},
		{
			Name:    "approvals",
			Path:    "/validate-templateapproval",
			Handler: approvals.New(approvals.Options{Templates: c.templates, Namespaces: c.approvals, ExcludedNamespaces: []string{o.namespace}}),
		},
		{
			Name:    "policies",
			Path:    "/validate-virtualmachinepolicy",
			Handler: policies.New(policies.Options{Policies: c.policies}),
		},
	} {
		listener.Register(webhook)
	}
	return addDefaults(mgr, listener, c, o)
}
