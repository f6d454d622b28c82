package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/apiserver"
	instancetypecache "github.com/vmstencil/stencil/cache/instancetypes"
	kubevirtconfig "github.com/vmstencil/stencil/cache/kubevirt"
	"github.com/vmstencil/stencil/cache/macaddresses"
	"github.com/vmstencil/stencil/defaulting/client"
	"github.com/vmstencil/stencil/internal/guestdefaults"
)

// addDefaults returns what the resource defaults needs, nil without a defaulter, and starts its caches in group. The server is ready when they are synced;
// the defaulter itself is not needed for the other resources.
func addDefaults(ctx context.Context, group *errgroup.Group, o *options, config *rest.Config, sizes *instancetypecache.Cache, logger logr.Logger) (*apiserver.Defaults, []healthz.HealthChecker, error) {
	if o.defaulting.Socket == "" {
		return nil, nil, nil
	}
	labels, err := apiserver.NamespaceLabels(config)
	if err != nil {
		return nil, nil, err
	}
	kubevirt, err := kubevirtconfig.New(kubevirtconfig.Options{Config: config, Logger: logger.WithName("kubevirtconfig")})
	if err != nil {
		return nil, nil, err
	}
	group.Go(func() error { return kubevirt.Start(ctx) })
	found := &apiserver.Defaults{
		Filler: guestdefaults.Filler{
			Defaulter:     client.NewCachingDefaulter(client.New(o.defaulting.Socket), clock.RealClock{}),
			Cluster:       kubevirt,
			Instancetypes: sizes,
			Policy:        o.defaulting.Policy(),
		},
		Labels: labels,
		Logger: logger.WithName("defaults"),
	}
	checks := []healthz.HealthChecker{synced("kubevirt", kubevirt), synced("instancetypes", sizes)}
	if o.defaulting.GeneratesMAC() {
		addresses, err := macaddresses.New(macaddresses.Options{Config: config, Logger: logger.WithName("macaddresses")})
		if err != nil {
			return nil, nil, err
		}
		group.Go(func() error { return addresses.Start(ctx) })
		found.Addresses = addresses
		checks = append(checks, synced("macaddresses", addresses))
	}
	return found, checks, nil
}

// synced returns a check that succeeds once a cache is synced.
func synced(name string, cache interface{ Synced() bool }) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(*http.Request) error {
		if !cache.Synced() {
			return errors.New("its cache is not synced")
		}
		return nil
	})
}
