package main

import (
	"fmt"

	"github.com/go-logr/logr"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/permission"
	"github.com/vmstencil/stencil/templatecache"
	"github.com/vmstencil/stencil/webhooks/render"
	"github.com/vmstencil/stencil/webhooks/serving"
	"github.com/vmstencil/stencil/webhooks/templates"
)

// addWebhooks registers the webhooks and adds the cache that they read. It returns that cache.
func addWebhooks(mgr manager.Manager, server *serving.Server, logger logr.Logger) (*templatecache.Cache, error) {
	cache, err := templatecache.New(templatecache.Options{
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("templatecache"),
		Registerer: metrics.Registry,
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(cache); err != nil {
		return nil, fmt.Errorf("adding the template cache: %w", err)
	}
	reviews, err := authorizationv1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client of permission checks: %w", err)
	}
	permissions, err := permission.New(permission.Options{Client: reviews, Registerer: metrics.Registry})
	if err != nil {
		return nil, err
	}
	for _, webhook := range []serving.Webhook{
		{
			Name:    "render",
			Path:    "/mutate-virtualmachine-render",
			Handler: render.New(render.Options{Templates: cache, Permissions: permissions}),
		},
		{
			Name:    "templates",
			Path:    "/validate-virtualmachinetemplate",
			Handler: templates.New(),
		},
	} {
		if err := server.Register(webhook); err != nil {
			return nil, err
		}
	}
	return cache, nil
}
