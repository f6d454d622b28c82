// Package road_test walks the main road as its users do: with kubectl, against
// a real API server with KubeVirt's own admission, and a stencil-manager that
// has no more rights than the chart gives it.
package road_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	stencil *platform.Platform
	// ada owns machines in team-a and may use the golden templates; bob owns
	// machines and may use none; carl may use templates and not see them.
	ada, bob, carl *controlplane.User
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	if stencil, err = platform.Start(ctx, platform.Options{KubeVirt: true, Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := stencil.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func prepare(ctx context.Context) error {
	for _, folder := range []string{"golden", "access"} {
		if out, err := stencil.Plane.Kubectl(ctx, nil, "", "apply", "-f", stencil.Example(folder)); err != nil || out.Code != 0 {
			return fmt.Errorf("applying %s: %w: %s", folder, err, out.Stderr)
		}
	}
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
	if out, err := stencil.Plane.Kubectl(ctx, nil, grants, "apply", "-f", "-"); err != nil || out.Code != 0 {
		return fmt.Errorf("granting: %w: %s", err, out.Stderr)
	}
	return nil
}

// kubectl runs kubectl as a person, in team-a unless the arguments say otherwise.
func kubectl(t *testing.T, as *controlplane.User, stdin string, args ...string) controlplane.Result {
	t.Helper()
	// Cleanups call kubectl too, after the context of the test has ended.
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--namespace=") }) {
		args = append([]string{"--namespace=team-a"}, args...)
	}
	out, err := stencil.Plane.Kubectl(context.WithoutCancel(t.Context()), as, stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// mustKubectl is kubectl that has to succeed.
func mustKubectl(t *testing.T, as *controlplane.User, stdin string, args ...string) controlplane.Result {
	t.Helper()
	out := kubectl(t, as, stdin, args...)
	if out.Code != 0 {
		t.Fatalf("kubectl %s: exit %d\n%s%s", strings.Join(args, " "), out.Code, out.Stdout, out.Stderr)
	}
	return out
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

// discard deletes VMs of team-a when the test ends, and waits until they are
// gone, so that the next test can use their names.
func discard(t *testing.T, names ...string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		args := append([]string{"--namespace=team-a", "delete", "virtualmachine", "--ignore-not-found", "--wait=true"}, names...)
		if out, err := stencil.Plane.Kubectl(ctx, nil, "", args...); err != nil || out.Code != 0 {
			t.Errorf("deleting %v: %v: %s", names, err, out.Stderr)
		}
	})
}

// eventually polls until the condition holds, and fails the test with what was
// last missing when it does not within half a minute.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = condition()
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(last)
	}
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
