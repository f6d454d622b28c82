package chart

import (
	"context"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// deadURL is an address at which no webhook ever answers: connections to port 1 of loopback are rejected at once.
const deadURL = "https://localhost:1"

// shared has a controller manager, which aggregates ClusterRoles, creates the Pods of a Deployment and type-checks policies. It has the definition of
// VirtualMachine, but no KubeVirt: KubeVirt's webhooks would answer before the chart's.
var shared = controlplane.Shared{Options: controlplane.Options{VirtualizationCRDs: true, ControllerManager: true}}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// installed installs the chart, and uninstalls it when the test ends: webhooks and policies affect the whole plane.
func installed(t *testing.T, options install.Options) *controlplane.Plane {
	t.Helper()
	plane := shared.Plane(t)
	if err := install.Chart(t.Context(), plane, options); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, plane, options)
	return plane
}

// cleanUp uninstalls the chart when the test ends.
func cleanUp(t *testing.T, plane *controlplane.Plane, options install.Options) {
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := install.Uninstall(context.Background(), plane, options); err != nil {
			t.Error(err)
		}
	})
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func namespace(t *testing.T, plane *controlplane.Plane) string {
	t.Helper()
	name := harness.Namespace(t, plane, "chart")
	return name
}

// kubectl runs kubectl as the user, as the administrator when nil.
func kubectl(t *testing.T, plane *controlplane.Plane, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, plane, as, stdin, arguments...)
}

// mustKubectl runs kubectl as the administrator, requires success, and returns the standard output.
func mustKubectl(t *testing.T, plane *controlplane.Plane, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, plane, nil, stdin, arguments...).Stdout
}

// eventually polls until there is no complaint. The parameter what completes the sentence "waiting until …".
func eventually(t *testing.T, what string, complaint func() string) {
	t.Helper()
	harness.Eventually(t, what, func() error { return harness.Complaint(complaint()) })
}
