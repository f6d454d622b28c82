// Package road_test tests the main use cases as users run them: with kubectl, against a real API server with KubeVirt's own admission, and a
// stencil-manager that has only the permissions of the chart.
package road_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	stencil *platform.Platform
	// ada has the role edit in the namespaces of the tests, and may view and use the golden templates. bob has KubeVirt's own role there
	// and may use no template. carl has the role edit, and may use the golden templates and not view them.
	ada, bob, carl *controlplane.User
)

// The groups have a role in the namespace of each test.
const (
	editors         = "road-editors"
	kubevirtEditors = "road-kubevirt-editors"
)

// namespaces has one namespace for each test.
var namespaces = harness.Namespaces{
	Prefix:  "road",
	Members: map[string]string{editors: "edit", kubevirtEditors: "kubevirt.io:edit"},
}

// roadGolden is the namespace of the templates of these tests: other packages on the shared plane list the namespace golden.
const roadGolden = "road-golden"

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if stencil, err = platform.Shared(ctx); err != nil {
		return nil, err
	}
	return stencil.Stop, prepare(ctx)
}

func prepare(ctx context.Context) error {
	namespaces.Plane = stencil.Plane
	shelf := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, roadGolden)
	if err := harness.Apply(ctx, stencil.Plane, shelf, stencil.Example("golden"), "-"); err != nil {
		return err
	}
	for _, each := range []struct {
		user      **controlplane.User
		name      string
		modifiers []gen.UserModifier
	}{
		{&ada, "ada", []gen.UserModifier{gen.Group(editors), gen.Role("golden", "view"), gen.UsesTemplates("golden"), gen.Role(roadGolden, "view"), gen.UsesTemplates(roadGolden)}},
		{&bob, "bob", []gen.UserModifier{gen.Group(kubevirtEditors)}},
		{&carl, "carl", []gen.UserModifier{gen.Group(editors), gen.UsesTemplates("golden"), gen.UsesTemplates(roadGolden)}},
	} {
		var err error
		if *each.user, err = gen.User(ctx, stencil.Plane, each.name, each.modifiers...); err != nil {
			return err
		}
	}
	return nil
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

// get returns a stored VM.
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

// discard deletes VMs when the test ends, for tests that use a name again.
func discard(t *testing.T, names ...string) {
	t.Helper()
	harness.Discard(t, stencil.Plane, namespaces.Of(t), names...)
}

func at(t *testing.T, vm *unstructured.Unstructured, fields ...string) any {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(vm.Object, fields...)
	if err != nil || !found {
		t.Fatalf("%s: found %v, %v", strings.Join(fields, "."), found, err)
	}
	return value
}

// vm returns the manifest of a VM that refers to a template.
func vm(name, ref string, modifiers ...gen.Modifier) string {
	return gen.Manifest(gen.VM(name, append(modifiers, gen.FromTemplate(ref))...))
}
