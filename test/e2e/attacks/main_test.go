// Package attacks_test tries to get a VirtualMachine past the approvals of its namespace, as a user who may only create and change VirtualMachines
// there and use templates. Every attempt runs against a real API server with KubeVirt's own admission; each must fail, and leave no objects behind.
package attacks_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	stencil *platform.Platform
	// mallory has the role edit in the namespaces of the tests, may use and view the golden templates, and may change namespaces.
	mallory *controlplane.User

	// namespaces has one namespace for each test, and an approval governs it.
	namespaces = harness.Namespaces{
		Prefix: "vault", Labels: map[string]string{"tier": "vault"}, Members: map[string]string{editors: "edit"}, Prepare: awaitApproval,
	}
)

// editors have the role edit in the namespace of each test.
const editors = "attacks-editors"

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if stencil, err = platform.Shared(ctx); err != nil {
		return nil, err
	}
	return stencil.Stop, prepare(ctx)
}

func prepare(ctx context.Context) (err error) {
	namespaces.Plane = stencil.Plane
	if err := harness.Apply(ctx, stencil.Plane, "", stencil.Example("golden")); err != nil {
		return err
	}
	// VMs from kiosk need no disk from elsewhere, so that they run; those from stand have a disk that KubeVirt creates.
	shelf := []gen.Modifier{gen.InNamespace("kiosks"), gen.Declares("NAME")}
	prepared := gen.Manifest(
		gen.Namespace("kiosks"),
		gen.Template("kiosk", append(shelf, gen.Renders("${NAME}", gen.SmallSpec(), gen.ContainerDisk("root", "registry.example/kiosk")))...),
		gen.Template("stand", append(shelf, gen.Renders("${NAME}", gen.SmallSpec(), gen.DataVolumeDisk("root", "${NAME}-root", "source: {blank: {}}")))...),
		gen.Approval("vault", gen.Approves("golden/fedora", "kiosks/kiosk", "kiosks/stand"), gen.Overrides("spec.runStrategy", "metadata.labels.team", "metadata.annotations.note"),
			gen.Spec("{namespaceSelector: {matchLabels: {tier: vault}}, parameters: [{name: INSTANCETYPE, allowed: [u1.medium, u1.large]}]}")))
	if err := harness.Apply(ctx, stencil.Plane, prepared, "-"); err != nil {
		return err
	}
	mallory, err = gen.User(ctx, stencil.Plane, "mallory", gen.Group(editors), gen.Role("golden", "view"), gen.UsesTemplates("golden"), gen.UsesTemplates("kiosks"),
		gen.Permits("", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "update", "patch"}}))
	return err
}

// awaitApproval returns when the manager and the API server enforce the approval in a namespace.
func awaitApproval(ctx context.Context, namespace string) error {
	return deadline.Wait(ctx, "the approval holds in namespace "+namespace, harness.Limit, func(ctx context.Context) error {
		out, err := stencil.Plane.Kubectl(ctx, mallory, vm("probe", "golden/windows", gen.Parameter("ANSWERS", "a")),
			"create", "--namespace="+namespace, "--dry-run=server", "-f", "-")
		if err == nil && !strings.Contains(out.Stderr, "not approved") {
			err = errors.New(out.Stdout + out.Stderr)
		}
		return err
	})
}

// kubectl runs kubectl as a user, in the namespace of the test unless the arguments contain another.
func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, stdin, harness.In(namespaces.Of(t), arguments)...)
}

func mustKubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Must(t, stencil.Plane, as, stdin, harness.In(namespaces.Of(t), arguments)...)
}

func get(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return stored(t, "virtualmachine", name)
}

// vm returns a manifest of a VM that refers to a template.
func vm(name, ref string, modifiers ...gen.Modifier) string {
	return gen.Manifest(gen.VM(name, append(modifiers, gen.FromTemplate(ref))...))
}

// wantDenied checks that an attack was denied, with all of the texts on standard error.
func wantDenied(t *testing.T, out controlplane.Result, wants ...string) {
	t.Helper()
	if out.Code == 0 {
		t.Fatalf("it was taken: %s", out.Stdout)
	}
	for _, want := range wants {
		if !strings.Contains(out.Stderr, want) {
			t.Errorf("standard error lacks %q:\n%s", want, out.Stderr)
		}
	}
}
