package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/vmstencil/stencil/internal/certificates"
	"github.com/vmstencil/stencil/internal/certificates/authority"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

// addCertificates adds the configured source of serving certificates, and what it needs, to the group.
func addCertificates(ctx context.Context, group *errgroup.Group, o *options, config *rest.Config, logger logr.Logger) (certificates.Source, error) {
	source, err := o.certificates.Open(config, logger, func() (authority.Publication, error) {
		return addPublication(ctx, group, o, config)
	})
	if err != nil {
		return nil, err
	}
	group.Go(func() error { return source.Start(ctx) })
	return source, nil
}

// addPublication adds the watch of the APIServices: a certificate is served once they trust it.
func addPublication(ctx context.Context, group *errgroup.Group, o *options, config *rest.Config) (authority.Publication, error) {
	targets, err := publication.ParseTargets(o.apiServices)
	if err != nil {
		return nil, fmt.Errorf("--api-services: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := apiregistrationv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("filling the scheme: %w", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the APIServices: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		return nil, fmt.Errorf("making the mapper of the APIServices: %w", err)
	}
	watch, err := publication.New(ctx, publication.Options{Config: config, HTTPClient: client, Mapper: mapper, Scheme: scheme, Targets: targets})
	if err != nil {
		return nil, err
	}
	group.Go(func() error { return watch.Start(ctx) })
	return watch, nil
}
