// Package certificates_test checks that stencil-manager's webhooks stay reachable while its certificates, its authority and its processes are
// replaced: real processes with the permissions of the chart, called by a real API server through a proxy that behaves like a Kubernetes Service.
package certificates_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/product"
)

const (
	renderConfiguration   = "mutatingwebhookconfiguration/a-stencil-render"
	validateConfiguration = "validatingwebhookconfiguration/stencil-validate"
	authoritySecret       = "stencil-webhook-ca"
)

var (
	shared = controlplane.Shared{Options: controlplane.Options{VirtualizationCRDs: true}, Prepare: prepare}
	// service is the Service that the API server calls; the release is installed with its URL.
	service *manager.Service
	release install.Options
	// managerUser has the permissions of the manager's ServiceAccount.
	managerUser *controlplane.User
	// binary is the manager, built once.
	binary string
	// running are the replicas of the present test.
	running []*manager.Process
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "stencil-callers-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if shared.Options.APIServerArgs, err = callerArguments(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := shared.Run(m)
	if service != nil {
		service.Close()
	}
	return code
}

func prepare(ctx context.Context, plane *controlplane.Plane) error {
	var err error
	if service, err = manager.NewService(ctx); err != nil {
		return err
	}
	release = install.Options{ManagerURL: service.URL()}
	if err := install.Chart(ctx, plane, release); err != nil {
		return err
	}
	if managerUser, err = release.ManagerUser(plane); err != nil {
		return err
	}
	binary, err = product.Binary(ctx, string(manager.StencilManager))
	return err
}

// startReplica starts a manager behind the service and stops it when the test ends.
func startReplica(t *testing.T, arguments ...string) *manager.Process {
	t.Helper()
	process := launch(t, manager.Options{Args: arguments})
	ensureTemplate(t)
	return process
}

// launch starts a manager behind the service, without a request to the API server.
func launch(t *testing.T, options manager.Options) *manager.Process {
	t.Helper()
	shared.Plane(t)
	options.Kubeconfig = managerUser.Kubeconfig
	options.Namespace = install.Namespace
	options.Binary = binary
	options.Args = slices.Concat(
		release.ManagerArgs(),
		[]string{"--shutdown-delay=1s", "--certificate-settle-time=1s"},
		options.Args,
	)
	// The context of a test ends before its cleanups, and the end of its context kills a process.
	ctx := context.WithoutCancel(t.Context())
	process, err := manager.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	service.Add(ctx, process)
	running = append(running, process)
	t.Cleanup(func() {
		// All replicas of a test terminate at once, each with its delay.
		for _, each := range running {
			_ = each.Terminate()
		}
		running = nil
		if err := process.Stop(); err != nil {
			t.Errorf("stopping a replica: %v", err)
		}
		if t.Failed() {
			t.Logf("what the replica at %s wrote:\n%s", process.WebhookAddress(), process.Logs())
		}
	})
	return process
}

// ensureTemplate creates the template that the stream of requests refers to, and waits until the API server reaches the manager and the manager has
// the template.
func ensureTemplate(t *testing.T) {
	t.Helper()
	requests := newRequests(t)
	harness.Eventually(t, "the template is stored", func() error { return requests.ensureTemplate(t.Context()) })
	harness.Eventually(t, "the template is rendered", func() error { return requests.vm(t.Context(), "probe") })
}

// kubectl runs kubectl as the administrator; it has to succeed.
func kubectl(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, shared.Plane(t), nil, stdin, arguments...).Stdout
}
