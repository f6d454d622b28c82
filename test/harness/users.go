package harness

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
)

// User makes a user, see gen.User.
func User(t *testing.T, plane *controlplane.Plane, name string, modifiers ...gen.UserModifier) *controlplane.User {
	t.Helper()
	user, err := gen.User(t.Context(), plane, name, modifiers...)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// Bind binds a ClusterRole to a user in a namespace, or in the whole cluster if that is empty.
func Bind(t *testing.T, plane *controlplane.Plane, user *controlplane.User, namespace, clusterRole string) {
	t.Helper()
	if err := plane.Bind(t.Context(), user, namespace, clusterRole); err != nil {
		t.Fatal(err)
	}
}

// Grant grants rules to a user in a namespace, or in the whole cluster if that is empty.
func Grant(t *testing.T, plane *controlplane.Plane, user *controlplane.User, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	if err := plane.Grant(t.Context(), user, namespace, rules...); err != nil {
		t.Fatal(err)
	}
}

// Namespace creates a namespace whose name begins with the prefix.
func Namespace(t *testing.T, plane *controlplane.Plane, prefix string) string {
	t.Helper()
	name, err := plane.Namespace(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// Controller returns the service account of a controller of KubeVirt or Kubernetes, which policies exempt: it may write the objects of KubeVirt, and has verb
// bypass by name. A member of system:masters has every verb, and is therefore not exempt.
func Controller(t *testing.T, plane *controlplane.Plane, account string) *controlplane.User {
	t.Helper()
	user := User(t, plane, "system:serviceaccount:"+account)
	Grant(t, plane, user, "",
		rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io", "pool.kubevirt.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{"stencil.kubevirt.io"}, Resources: []string{"templateapprovals"}, Verbs: []string{"bypass"}})
	return user
}

// Revoke deletes the bindings of a user in a namespace, and returns when the API server denies an action there: verb and resource, as kubectl auth can-i has them.
func Revoke(t *testing.T, plane *controlplane.Plane, user *controlplane.User, namespace string, action ...string) {
	t.Helper()
	bindings := Must(t, plane, nil, "", "get", "rolebindings", "-n", namespace, "-o", "jsonpath={range .items[*]}{.metadata.name} {.subjects[0].name}{\"\\n\"}{end}").Stdout
	for line := range strings.Lines(bindings) {
		if name, subject, _ := strings.Cut(strings.TrimSpace(line), " "); subject == user.Name {
			Must(t, plane, nil, "", "delete", "rolebinding", name, "-n", namespace)
		}
	}
	Eventually(t, "the right is revoked", func() error {
		if got := Kubectl(t, plane, user, "", append([]string{"auth", "can-i", "-n", namespace}, action...)...); !strings.HasPrefix(got.Stdout, "no") {
			return Complaint(got.Stdout + got.Stderr)
		}
		return nil
	})
}
