package controlplane

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestTheAPIServerKnowsUsersAndTheirGroups(t *testing.T) {
	plane := shared.Plane(t)
	user, err := plane.User("alice", "authors", "readers")
	if err != nil {
		t.Fatal(err)
	}
	got := kubectl(t, plane, user, "", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	if want := `alice ["authors","readers","system:authenticated"]`; got.Stdout != want {
		t.Errorf("want %s, got %s%s", want, got.Stdout, got.Stderr)
	}
}

func TestPermissions(t *testing.T) {
	plane := shared.Plane(t)
	own, other := namespace(t, plane), namespace(t, plane)
	user := func(name string) *User {
		user, err := plane.User(name)
		if err != nil {
			t.Fatal(err)
		}
		return user
	}
	reader, auditor, editor, withoutRole := user("reader"), user("auditor"), user("editor"), user("nobody")
	readSecrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}}
	if err := plane.Grant(t.Context(), reader, own, readSecrets); err != nil {
		t.Fatal(err)
	}
	if err := plane.Grant(t.Context(), auditor, "", readSecrets); err != nil {
		t.Fatal(err)
	}
	if err := plane.Bind(t.Context(), editor, own, "edit"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		as        *User
		arguments []string
		allowed   bool
	}{
		"a new user may nothing":                                    {as: withoutRole, arguments: []string{"get", "secrets", "-n", own}},
		"a rule in a namespace holds there":                         {as: reader, arguments: []string{"get", "secrets", "-n", own}, allowed: true},
		"a rule in a namespace does not hold in another":            {as: reader, arguments: []string{"get", "secrets", "-n", other}},
		"a rule allows no other verb":                               {as: reader, arguments: []string{"delete", "secret", "a", "-n", own}},
		"a rule without a namespace holds everywhere":               {as: auditor, arguments: []string{"get", "secrets", "-A"}, allowed: true},
		"a bound ClusterRole holds in its namespace":                {as: editor, arguments: []string{"create", "configmap", "a", "-n", own}, allowed: true},
		"KubeVirt adds VirtualMachines to the ClusterRole edit":     {as: editor, arguments: []string{"get", "vms", "-n", own}, allowed: true},
		"a bound ClusterRole does not hold in another namespace":    {as: editor, arguments: []string{"create", "configmap", "a", "-n", other}},
		"the administrator, whom no user stands for, may do it all": {arguments: []string{"get", "secrets", "-n", other}, allowed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := kubectl(t, plane, tc.as, "", tc.arguments...)
			switch {
			case tc.allowed && got.Code != 0:
				t.Errorf("want success, got: %s", got.Stderr)
			case !tc.allowed && (got.Code == 0 || !strings.Contains(got.Stderr, "orbidden")):
				t.Errorf("want a refusal, got: %s%s", got.Stdout, got.Stderr)
			}
		})
	}
}

func TestAnAggregatedRoleIsNotBoundWhereItIsEmpty(t *testing.T) {
	plane := StartFor(t, Options{})
	user, err := plane.User("editor")
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Bind(t.Context(), user, "default", "edit"); err == nil || !strings.Contains(err.Error(), "Options.ControllerManager") {
		t.Errorf("want an error that names the missing option, got %v", err)
	}
}
