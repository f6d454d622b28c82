// Package road_test walks the main road as its users do: with kubectl, against
// a real API server with KubeVirt's own admission, and a stencil-manager that
// has no more rights than the chart gives it.
package road_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	stencil *platform.Platform
	// ada owns machines in team-a and may use the golden templates; bob owns
	// machines and may use none; carl may use templates and not see them.
	ada, bob, carl *controlplane.User
)

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if stencil, err = platform.Shared(ctx); err != nil {
		return nil, err
	}
	return stencil.Stop, prepare(ctx)
}

func prepare(ctx context.Context) error {
	for _, person := range []struct {
		user  **controlplane.User
		name  string
		group string
	}{{&ada, "ada", "team-a"}, {&bob, "bob", "owners"}, {&carl, "carl", "owners"}} {
		user, err := stencil.Plane.User(person.name, person.group)
		if err != nil {
			return err
		}
		*person.user = user
	}
	grants := `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: owners, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: machine-owner}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: owners}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: blind-user, namespace: golden}
rules: [{apiGroups: [template.kubevirt.io], resources: [virtualmachinetemplates], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: carl-uses-blindly, namespace: golden}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: blind-user}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carl}]
`
	return harness.Apply(ctx, stencil.Plane, grants, stencil.Example("golden"), stencil.Example("access"), "-")
}

// kubectl runs kubectl as a person, in team-a unless the arguments say otherwise.
func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, stdin, harness.In("team-a", arguments)...)
}

func mustKubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Must(t, stencil.Plane, as, stdin, harness.In("team-a", arguments)...)
}

// get returns a stored VM of team-a.
func get(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return decode(t, mustKubectl(t, nil, "", "get", "virtualmachine", name, "-o", "json").Stdout)
}

func decode(t *testing.T, raw string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(raw)); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return &u
}

// discard deletes VMs of team-a when the test ends.
func discard(t *testing.T, names ...string) {
	t.Helper()
	harness.Discard(t, stencil.Plane, "team-a", names...)
}

func at(t *testing.T, vm *unstructured.Unstructured, fields ...string) any {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(vm.Object, fields...)
	if err != nil || !found {
		t.Fatalf("%s: found %v, %v", strings.Join(fields, "."), found, err)
	}
	return value
}

// machine is the manifest of a VM in team-a that refers to a template.
func machine(name, ref string, parameters map[string]string, rest string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: %s\n  namespace: team-a\n  annotations:\n    template.kubevirt.io/template-ref: %q\n", name, ref)
	for key, value := range parameters {
		fmt.Fprintf(&b, "    parameter.template.kubevirt.io/%s: %q\n", key, value)
	}
	b.WriteString(rest)
	return b.String()
}
