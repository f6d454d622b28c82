package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/certificates"
	"github.com/vmstencil/stencil/certificates/authority"
	"github.com/vmstencil/stencil/certificates/files"
	"github.com/vmstencil/stencil/certificates/publication"
	"github.com/vmstencil/stencil/reconcilers/cabundle"
)

// authorityLabels mark the Secret of the authority as Stencil's.
var authorityLabels = map[string]string{"app.kubernetes.io/managed-by": "stencil-manager"}

// addCertificates adds the source of serving certificates that the options ask for, and what it needs.
func addCertificates(ctx context.Context, mgr manager.Manager, o *options, logger logr.Logger) (certificates.Source, error) {
	var source certificates.Source
	var err error
	if o.certificateSource == sourceFiles {
		source, err = files.New(files.Options{Directory: o.certificateDirectory})
	} else {
		source, err = addAuthority(ctx, mgr, o, logger)
	}
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

// addAuthority adds the watch of the webhook configurations and the reconciler that publishes the authority in them.
func addAuthority(ctx context.Context, mgr manager.Manager, o *options, logger logr.Logger) (certificates.Source, error) {
	secret := types.NamespacedName{Namespace: o.authorityNamespace, Name: o.authoritySecret}
	targets, err := publication.ParseTargets(slices.Concat(o.webhookConfigurations, o.apiServices))
	if err != nil {
		return nil, fmt.Errorf("--webhook-configurations, --api-services: %w", err)
	}
	if len(targets) == 0 {
		logger.Info("no webhook configurations are named, so nobody publishes the authority: API servers have to be told to trust it")
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
		Secret:              secret,
		Configurations:      watch,
		Client:              mgr.GetClient(),
		CertificateDuration: o.certificateDuration,
		Recorder:            mgr.GetEventRecorder("stencil-ca-bundle"),
		Registerer:          metrics.Registry,
	})
	if err != nil {
		return nil, err
	}
	if err := reconciler.SetupWithManager(mgr, mgr.GetCache(), watch); err != nil {
		return nil, err
	}
	return authority.New(authority.Options{
		Config:            mgr.GetConfig(),
		Secret:            secret,
		SecretLabels:      authorityLabels,
		AuthorityDuration: o.authorityDuration,
		Duration:          o.certificateDuration,
		Names:             o.certificateNames,
		Settling:          o.certificateSettleTime,
		Publication:       watch,
		Logger:            logger,
	}), nil
}
