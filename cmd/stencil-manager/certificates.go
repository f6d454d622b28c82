package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/internal/certificates"
	"github.com/vmstencil/stencil/internal/certificates/authority"
	"github.com/vmstencil/stencil/internal/certificates/publication"
	"github.com/vmstencil/stencil/reconcilers/cabundle"
)

// addCertificates adds the configured source of serving certificates, and what it needs.
func addCertificates(ctx context.Context, mgr manager.Manager, o *options, logger logr.Logger) (certificates.Source, error) {
	source, err := o.certificates.Open(mgr.GetConfig(), logger, func() (authority.Publication, error) {
		return addPublication(ctx, mgr, o, logger)
	})
	if err != nil {
		return nil, err
	}
	if err := certificates.RegisterExpiry(metrics.Registry, source); err != nil {
		return nil, err
	}
	if err := mgr.Add(source); err != nil {
		return nil, fmt.Errorf("adding the certificate source: %w", err)
	}
	return source, nil
}

// addPublication adds the watch of the webhook configurations and the reconciler that publishes the authority in them.
func addPublication(ctx context.Context, mgr manager.Manager, o *options, logger logr.Logger) (authority.Publication, error) {
	targets, err := publication.ParseTargets(slices.Concat(o.webhookConfigurations, o.apiServices))
	if err != nil {
		return nil, fmt.Errorf("--webhook-configurations, --api-services: %w", err)
	}
	if len(targets) == 0 {
		logger.Info("no webhook configurations are named, so the authority is not published: API servers must be configured to trust it")
	}
	watch, err := publication.New(ctx, publication.Options{
		Config:     mgr.GetConfig(),
		HTTPClient: mgr.GetHTTPClient(),
		Mapper:     mgr.GetRESTMapper(),
		Scheme:     mgr.GetScheme(),
		Targets:    targets,
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(watch); err != nil {
		return nil, fmt.Errorf("adding the watch of the webhook configurations: %w", err)
	}
	reconciler, err := cabundle.New(cabundle.Options{
		Secrets:             mgr.GetCache(),
		Secret:              o.certificates.AuthoritySecret(),
		Configurations:      watch,
		Client:              mgr.GetClient(),
		CertificateDuration: o.certificates.Duration,
		Recorder:            mgr.GetEventRecorder("stencil-ca-bundle"),
		Registerer:          metrics.Registry,
	})
	if err != nil {
		return nil, err
	}
	if err := reconciler.SetupWithManager(mgr, mgr.GetCache(), watch); err != nil {
		return nil, err
	}
	return watch, nil
}
