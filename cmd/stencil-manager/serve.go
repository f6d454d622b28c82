package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/reconcilers"
	"github.com/vmstencil/stencil/webhooks"
	"github.com/vmstencil/stencil/webhooks/serving"
)

// serve builds all components of the process and runs them until ctx ends and the shutdown is complete.
func serve(ctx context.Context, o *options, config *rest.Config, logger logr.Logger) error {
	if err := currentBuild().Register(metrics.Registry); err != nil {
		return err
	}
	mgr, err := newManager(ctx, o, config)
	if err != nil {
		return err
	}
	source, err := addCertificates(ctx, mgr, o, logger.WithName("certificates"))
	if err != nil {
		return err
	}
	server, err := serving.New(serving.Options{
		BindAddress:     o.webhookBindAddress,
		Certificates:    source,
		LimitTLS:        o.tls.Limit,
		HTTP2:           o.webhookHTTP2,
		Callers:         serving.Callers{AuthorityFile: o.webhookClientCAFile, Names: o.webhookClientNames},
		ShutdownTimeout: o.shutdownTimeout,
		Registerer:      metrics.Registry,
		Logger:          logger.WithName("webhooks"),
	})
	if err != nil {
		return err
	}
	caches, err := addCaches(mgr, o, logger)
	if err != nil {
		return err
	}
	served, err := o.webhooks(server, caches)
	if err != nil {
		return err
	}
	if err := webhooks.Setup(mgr, served); err != nil {
		return err
	}
	settings, err := o.reconcilers(caches)
	if err != nil {
		return err
	}
	if err := reconcilers.Setup(mgr, settings); err != nil {
		return err
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the webhook server: %w", err)
	}
	if err := addChecks(mgr, source, server, caches, logger.WithName("readiness")); err != nil {
		return err
	}

	// Everything runs through the delay: the caches must stay current while requests arrive.
	lingering := serving.Linger(ctx, o.shutdownDelay, clock.RealClock{}, func() {
		logger.Info("shutting down: still serving, no longer ready", "delay", o.shutdownDelay.String())
		server.Drain()
	})
	if err := mgr.Start(lingering); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}
