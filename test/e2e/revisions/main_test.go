// Package revisions_test checks that stored instance types in every format that KubeVirt has written are brought to the current one, and that
// KubeVirt's own controller uses them afterwards as before. The reconciler runs in the test, with the permissions of the account in the chart, so
// that each of its writes can fail.
package revisions_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/reconcilers/revisions"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

// account writes ControllerRevisions, with these permissions and no others.
const (
	account = "system:serviceaccount:stencil-system:stencil-revisions"

	permissions = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: revisions}
rules:
  - {apiGroups: [apps], resources: [controllerrevisions], verbs: [create, patch, delete]}
  - {apiGroups: [""], resources: [resourcequotas], verbs: [list]}
  - {apiGroups: [kubevirt.io], resources: [virtualmachines/finalizers], verbs: [update]}
  - {apiGroups: [snapshot.kubevirt.io], resources: [virtualmachinesnapshots/finalizers], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: revisions}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: revisions}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: "` + account + `"}]
`
)

var (
	plane   *controlplane.Plane
	apps    *appsclient.AppsV1Client
	objects dynamic.Interface
)

func TestMain(m *testing.M) {
	harness.Main(m, func(ctx context.Context) (func() error, error) {
		logf.SetLogger(logr.Discard())
		started, err := controlplane.Start(ctx, controlplane.Options{KubeVirt: true, ControllerManager: true, Log: os.Stderr})
		if err != nil {
			return nil, err
		}
		return started.Stop, use(ctx, started)
	})
}

// use makes a plane with KubeVirt's CRDs that of the tests, and installs what the reconciler needs.
func use(ctx context.Context, p *controlplane.Plane) error {
	definitions, err := controlplane.ReadCRDs(filepath.Join("..", "..", "..", "charts", "stencil", "files", "crds"))
	if err == nil {
		err = p.InstallCRDs(ctx, definitions...)
	}
	if err == nil {
		err = harness.Apply(ctx, p, permissions, "-")
	}
	if err != nil {
		return err
	}
	plane = p
	if apps, err = appsclient.NewForConfig(p.AdminConfig()); err != nil {
		return err
	}
	objects, err = dynamic.NewForConfig(p.AdminConfig())
	return err
}

// writer is a manager, whose writes a test can end.
type writer struct {
	*revisions.Reconciler
	events *events.FakeRecorder
}

// newWriter returns a manager. crash is called before each write; if it returns true, that write and all later ones fail as if the process had ended.
// It is called again after the write.
func newWriter(t *testing.T, crash func(after bool, request *http.Request) bool) *writer {
	t.Helper()
	if crash == nil {
		return newWriterOf(t, clock.RealClock{}, nil)
	}
	return newWriterOf(t, clock.RealClock{}, func(next http.RoundTripper) http.RoundTripper { return &faulty{next: next, crash: crash} })
}

// newWriterOf returns a manager with a clock, whose requests pass through a transport.
func newWriterOf(t *testing.T, clock clock.PassiveClock, transport transport.WrapperFunc) *writer {
	t.Helper()
	config := rest.CopyConfig(plane.AdminConfig())
	if transport != nil {
		config.Wrap(transport)
	}
	recorder := events.NewFakeRecorder(1000)
	reconciler, err := revisions.New(revisions.Options{Config: config, Account: account, Recorder: recorder, Registerer: prometheus.NewRegistry(), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return &writer{reconciler, recorder}
}

// pass makes one pass.
func (w *writer) pass(t *testing.T) error {
	t.Helper()
	_, err := w.Reconcile(context.WithoutCancel(t.Context()), reconcile.Request{})
	return err
}

type faulty struct {
	next  http.RoundTripper
	crash func(after bool, request *http.Request) bool
	dead  bool
}

func (f *faulty) RoundTrip(request *http.Request) (*http.Response, error) {
	// Dry runs change nothing.
	write := request.Method != http.MethodGet && request.URL.Query().Get("dryRun") == ""
	if write && !f.dead {
		f.dead = f.crash(false, request)
	}
	if f.dead {
		return nil, fmt.Errorf("the process ended before %s %s", request.Method, request.URL.Path)
	}
	response, err := f.next.RoundTrip(request)
	if write && f.crash(true, request) {
		f.dead = true
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, fmt.Errorf("the process ended after %s %s", request.Method, request.URL.Path)
	}
	return response, err
}
