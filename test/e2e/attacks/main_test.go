// Package attacks_test tries to get a VirtualMachine past the approvals of its
// namespace, as a person who may create and change VirtualMachines there and use
// templates, and nothing else. Every attempt runs against a real API server with
// KubeVirt's own admission; each must fail, and leave nothing behind.
package attacks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	stencil *platform.Platform
	// mallory has the role edit in vault, the governed namespace, and may use and view
	// the golden templates.
	mallory *controlplane.User
)

const prepared = `
apiVersion: v1
kind: Namespace
metadata: {name: vault, labels: {tier: vault}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: vault}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}
- {kind: ServiceAccount, name: builder, namespace: vault}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: attackers-use, namespace: golden}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: stencil-template-user}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}
- {kind: ServiceAccount, name: builder, namespace: vault}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: attackers-view, namespace: golden}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}
- {kind: ServiceAccount, name: builder, namespace: vault}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: namespace-labeller}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [get, update, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: mallory-labels-namespaces}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: namespace-labeller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
---
apiVersion: stencil.kubevirt.io/v1alpha1
kind: TemplateApproval
metadata: {name: vault}
spec:
  namespaceSelector: {matchLabels: {tier: vault}}
  templates: [{namespace: golden, name: fedora}]
  parameters: [{name: INSTANCETYPE, allowed: [u1.medium, u1.large]}]
  overrides: [spec.runStrategy, "metadata.labels.team", "metadata.annotations.note"]
`

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if stencil, err = platform.Shared(ctx); err != nil {
		return nil, err
	}
	return stencil.Stop, prepare(ctx)
}

func prepare(ctx context.Context) (err error) {
	if mallory, err = stencil.Plane.User("mallory"); err != nil {
		return err
	}
	if err := harness.Apply(ctx, stencil.Plane, "", stencil.Example("golden"), stencil.Example("access")); err != nil {
		return err
	}
	if err := harness.Apply(ctx, stencil.Plane, prepared, "-"); err != nil {
		return err
	}
	// The approval holds as soon as the manager and the API server have read it.
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		out, err := stencil.Plane.Kubectl(ctx, mallory, machine("probe", "golden/windows", map[string]string{"ANSWERS": "a"}, ""), "create", "--dry-run=server", "-f", "-")
		return err == nil && strings.Contains(out.Stderr, "not approved"), err
	})
}

// kubectl runs kubectl as a person, in vault unless the arguments say otherwise.
func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, stdin, harness.In("vault", arguments)...)
}

func mustKubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Must(t, stencil.Plane, as, stdin, harness.In("vault", arguments)...)
}

func discard(t *testing.T, names ...string) {
	t.Helper()
	harness.Discard(t, stencil.Plane, "vault", names...)
}

func get(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(mustKubectl(t, nil, "", "get", "virtualmachine", name, "-o", "json").Stdout)); err != nil {
		t.Fatal(err)
	}
	return &u
}

// machine is a manifest of a VM in vault that refers to a template.
func machine(name, ref string, parameters map[string]string, rest string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: %s\n  namespace: vault\n  annotations:\n    template.kubevirt.io/template-ref: %q\n", name, ref)
	for key, value := range parameters {
		fmt.Fprintf(&b, "    parameter.template.kubevirt.io/%s: %q\n", key, value)
	}
	b.WriteString(rest)
	return b.String()
}

// refused runs an attack: it has to fail with one of the texts, and nothing with a
// name of an attacker's may exist afterwards.
func refused(t *testing.T, out controlplane.Result, wants ...string) {
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
