package policies_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
)

func TestExemptSubjects(t *testing.T) {
	people := map[string]*controlplane.User{}
	for name, groups := range map[string][]string{
		"ann":                               nil,
		"bea":                               {"machinists", "owners"},
		"system:serviceaccount:build:maker": {"system:serviceaccounts", "system:serviceaccounts:build"},
		"system:serviceaccount:build:ann":   {"system:serviceaccounts", "system:serviceaccounts:build"},
		"system:serviceaccount:other:maker": {"system:serviceaccounts", "system:serviceaccounts:other"},
		"machinists":                        nil,
		"maker":                             nil,
		"Ann":                               nil,
	} {
		person, err := shared.Plane(t).User(name, groups...)
		if err != nil {
			t.Fatal(err)
		}
		if err := shared.Plane(t).Grant(t.Context(), person, "", ownership...); err != nil {
			t.Fatal(err)
		}
		people[name] = person
	}
	space := namespace(t)
	mustKubectl(t, plain("stored"), "create", "--namespace", space, "-f", "-")
	approve(t, "exempts", object{"namespaces": []any{space}, "exemptSubjects": []any{
		object{"kind": "User", "name": "ann"},
		object{"kind": "Group", "name": "machinists"},
		object{"kind": "ServiceAccount", "namespace": "build", "name": "maker"},
	}})
	cases := map[string]struct {
		who    string
		exempt bool
	}{
		"a user by name":                                 {"ann", true},
		"a member of a group":                            {"bea", true},
		"a service account":                              {"system:serviceaccount:build:maker", true},
		"another service account of that namespace":      {"system:serviceaccount:build:ann", false},
		"a service account of that name elsewhere":       {"system:serviceaccount:other:maker", false},
		"a user who is called like the group":            {"machinists", false},
		"a user who is called like the service account":  {"maker", false},
		"a user whose name is spelt with another letter": {"Ann", false},
	}
	t.Run("each", func(t *testing.T) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				wantCreate, wantUpdate := needsTemplate("exempts"), frozen("exempts")
				if tc.exempt {
					wantCreate, wantUpdate = refusal{}, refusal{}
				}
				wantCreate.check(t, kubectl(t, people[tc.who], plain("a"), "create", "--namespace", space, "--dry-run=server", "-f", "-"))
				wantUpdate.check(t, kubectl(t, people[tc.who], "", "patch", "virtualmachine", "stored", "--namespace", space, "--dry-run=server",
					"--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`))
			})
		}
	})
}

// An approval speaks for itself only: to be exempt from one is not to be exempt from another.
func TestSeveralApprovalsOfOneNamespace(t *testing.T) {
	exempts := func(who *controlplane.User) []any { return []any{object{"kind": "User", "name": who.Name}} }
	space, other := namespace(t), namespace(t)
	approve(t, "first", object{"namespaces": []any{space}, "exemptSubjects": exempts(owner)})
	create := func(as *controlplane.User, namespace string) controlplane.Result {
		return kubectl(t, as, plain("a"), "create", "--namespace", namespace, "--dry-run=server", "-f", "-")
	}

	refusal{}.check(t, create(owner, space))
	needsTemplate("first").check(t, create(stranger, space))

	t.Run("a second one that does not exempt the person", func(t *testing.T) {
		approve(t, "second", object{"namespaces": []any{space}})
		needsTemplate("second").check(t, create(owner, space))
		refusal{}.check(t, create(owner, other))
	})
	t.Run("a second one that exempts the person too", func(t *testing.T) {
		approve(t, "third", object{"namespaces": []any{space}, "exemptSubjects": exempts(owner)})
		refusal{}.check(t, create(owner, space))
	})
	for _, enforcement := range []string{"Warn", "Audit"} {
		t.Run("a second one that does not exempt the person and refuses nothing either: "+enforcement, func(t *testing.T) {
			approve(t, "lax", object{"namespaces": []any{space}})
			mustKubectl(t, "", "patch", "templateapproval", "lax", "--type=merge", "--patch", `{"spec": {"enforcement": "`+enforcement+`"}}`)
			eventually(t, func() string { return refusal{}.complaint(create(owner, space)) })
		})
	}
	t.Run("an approval that says nothing of enforcement denies", func(t *testing.T) {
		approve(t, "silent", object{"namespaces": []any{other}})
		if got := mustKubectl(t, "", "get", "templateapproval", "silent", "--output=jsonpath={.spec.enforcement}"); got != "Deny" {
			t.Errorf("it was stored with enforcement %q", got)
		}
		needsTemplate("silent").check(t, create(owner, other))
	})
	t.Run("without an approval there is nothing to refuse", func(t *testing.T) {
		refusal{}.check(t, create(owner, other))
	})
}
