package audit_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/reconcilers"
	"github.com/vmstencil/stencil/reconcilers/selfprotection"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// leader is the part of a manager that runs on the leader of a release, in this process.
type leader struct {
	manager.Manager
	registry *prometheus.Registry
}

// newLeader makes a manager with the permissions of the chart.
func newLeader(t *testing.T, plane *controlplane.Plane) *leader {
	t.Helper()
	user, err := install.Options{}.ManagerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	settings := user.Config()
	settings.QPS = -1
	skip := true
	mgr, err := ctrl.NewManager(settings, manager.Options{
		Scheme:  scheme,
		Logger:  testr.NewWithOptions(t, testr.Options{Verbosity: 1}),
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Each test has a manager of its own.
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &leader{mgr, prometheus.NewRegistry()}
}

// run runs the manager until the test ends or the returned function is called.
func (l *leader) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func (l *leader) add(t *testing.T, one manager.Runnable) {
	t.Helper()
	if err := l.Add(one); err != nil {
		t.Fatal(err)
	}
}

// addProtection adds self-protection.
func (l *leader) addProtection(t *testing.T) {
	t.Helper()
	protection, err := selfprotection.New(selfprotection.Options{
		ConfigMap:  types.NamespacedName{Namespace: install.Namespace, Name: "stencil-protected-objects"},
		Reader:     l.GetAPIReader(),
		Client:     l.GetClient(),
		Recorder:   l.GetEventRecorder("stencil-self-protection"),
		Registerer: l.registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := protection.SetupWithManager(l); err != nil {
		t.Fatal(err)
	}
}

// addGoverning adds the reconcilers of approvals.
func (l *leader) addGoverning(t *testing.T) {
	t.Helper()
	templates, err := templatecache.New(templatecache.Options{Config: l.GetConfig(), Logger: l.GetLogger()})
	if err != nil {
		t.Fatal(err)
	}
	l.add(t, templates)
	if err := reconcilers.SetupApprovals(l, reconcilers.Options{
		Namespace: install.Namespace, Registerer: l.registry, Templates: templates,
		Audit: reconcilers.Audit{ReportsInterval: 200 * time.Millisecond, ChangeDelay: 500 * time.Millisecond},
	}); err != nil {
		t.Fatal(err)
	}
}

// metric returns the value of one of the leader's metrics, -1 when there is none with these labels.
func (l *leader) metric(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	metrics:
		for _, one := range family.GetMetric() {
			for _, pair := range one.GetLabel() {
				if want, asked := labels[pair.GetName()]; asked && want != pair.GetValue() {
					continue metrics
				}
			}
			return one.GetGauge().GetValue() + one.GetCounter().GetValue()
		}
	}
	return -1
}
