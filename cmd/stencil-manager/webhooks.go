package main

import (
	"fmt"

	"github.com/go-logr/logr"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/approvalcache"
	"github.com/vmstencil/stencil/permission"
	"github.com/vmstencil/stencil/templatecache"
	"github.com/vmstencil/stencil/webhooks/approvals"
	"github.com/vmstencil/stencil/webhooks/render"
	"github.com/vmstencil/stencil/webhooks/serving"
	"github.com/vmstencil/stencil/webhooks/templates"
	"github.com/vmstencil/stencil/webhooks/validate"
)

// caches are what webhooks decide from. Every replica has its own.
type caches struct {
	templates *templatecache.Cache
	approvals *approvalcache.Cache
}

// addCaches makes the caches and lets the manager run them.
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
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("approvalcache"),
		Registerer: metrics.Registry,
		Spared:     []string{o.namespace},
	}); err != nil {
		return c, err
	}
	for name, cache := range map[string]manager.Runnable{"template": c.templates, "approval": c.approvals} {
		if err := mgr.Add(cache); err != nil {
			return c, fmt.Errorf("adding the %s cache: %w", name, err)
		}
	}
	return c, nil
}

// addWebhooks registers the webhooks.
func addWebhooks(mgr manager.Manager, server *serving.Server, c caches, o *options) error {
	reviews, err := authorizationv1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the client of permission checks: %w", err)
	}
	permissions, err := permission.New(permission.Options{Client: reviews, Registerer: metrics.Registry})
	if err != nil {
		return err
	}
	for _, webhook := range []serving.Webhook{
		{
			Name: "render",
			Path: "/mutate-virtualmachine-render",
			Handler: render.New(render.Options{
				Templates:   c.templates,
				Permissions: permissions,
				Approvals:   c.approvals,
				ExemptUsers: o.exemptUsers,
			}),
		},
		{
			Name: "machines",
			Path: "/validate-virtualmachine",
			Handler: validate.New(validate.Options{
				Templates:   c.templates,
				Approvals:   c.approvals,
				ExemptUsers: o.exemptUsers,
			}),
		},
		{
			Name:    "templates",
			Path:    "/validate-virtualmachinetemplate",
			Handler: templates.New(),
		},
		{
			Name:    "approvals",
			Path:    "/validate-templateapproval",
			Handler: approvals.New(approvals.Options{Templates: c.templates, Namespaces: c.approvals, Spared: []string{o.namespace}}),
		},
	} {
		if err := server.Register(webhook); err != nil {
			return err
		}
	}
	return nil
}
