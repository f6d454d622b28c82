package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/uninstall"
)

// The times of leader election are twice those of controller-runtime. A leader that loses its lease has to
// exit, which removes a replica that serves webhooks, while no reconciler here is urgent.
const (
	leaseDuration = uninstall.LeaseDuration
	renewDeadline = 20 * time.Second
	retryPeriod   = 4 * time.Second
)

// exitMargin is the time, beyond --shutdown-timeout, in which the manager stops everything else.
const exitMargin = 5 * time.Second

// metrics returns the options of the server of the metrics.
func (o *options) metrics() metricsserver.Options {
	return metricsserver.Options{
		BindAddress:   o.metricsBindAddress,
		SecureServing: o.metricsCertPath != "",
		CertDir:       o.metricsCertPath,
		TLSOpts:       []func(*tls.Config){o.tls.Limit},
	}
}

// newManager returns a controller-runtime manager that can read only what the reconcilers need.
func newManager(ctx context.Context, o *options, config *rest.Config) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionregistrationv1.AddToScheme, apiregistrationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("filling the scheme: %w", err)
		}
	}
	var lease resourcelock.Interface
	if o.leaderElect {
		var err error
		if lease, err = newLease(ctx, o, config); err != nil {
			return nil, err
		}
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: scheme,
		Cache: cache.Options{
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}: {Namespaces: map[string]cache.Config{
					o.certificates.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", o.certificates.Secret)},
				}},
			},
			// A read of anything else is a programming error, and must not start a watch of the whole cluster.
			ReaderFailOnMissingInformer: true,
		},
		LeaderElection:                      o.leaderElect,
		LeaderElectionResourceLockInterface: lease,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       ptr.To(leaseDuration),
		RenewDeadline:                       ptr.To(renewDeadline),
		RetryPeriod:                         ptr.To(retryPeriod),
		Metrics:                             o.metrics(),
		HealthProbeBindAddress:              o.healthProbeBindAddress,
		PprofBindAddress:                    o.pprofBindAddress,
		GracefulShutdownTimeout:             ptr.To(o.shutdownTimeout + exitMargin),
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, nil
}
