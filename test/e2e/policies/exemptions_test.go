package policies_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

func TestExemptSubjects(t *testing.T) {
	t.Parallel()
	users := map[string]*controlplane.User{}
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
		person := harness.User(t, shared.Plane(t), name, gen.Group(groups...))
		harness.Grant(t, shared.Plane(t), person, "", ownership...)
		users[name] = person
	}
	space := namespace(t)
	mustPass(t, acting(t, nil, space).create(plain("stored")))
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
					wantCreate, wantUpdate = denial{}, denial{}
				}
				wantCreate.check(t, dry(t, users[tc.who], space).create(plain("a")))
				wantUpdate.check(t, dry(t, users[tc.who], space).patch(vms, "stored", `{"spec": {"runStrategy": "Always"}}`))
			})
		}
	})
}

// An exemption of one approval is not an exemption of another.
func TestSeveralApprovalsOfOneNamespace(t *testing.T) {
	t.Parallel()
	exempts := func(who *controlplane.User) []any { return []any{object{"kind": "User", "name": who.Name}} }
	space, other := namespace(t), namespace(t)
	approve(t, "first", object{"namespaces": []any{space}, "exemptSubjects": exempts(owner)})
	create := func(as *controlplane.User, namespace string) controlplane.Result {
		return dry(t, as, namespace).create(plain("a"))
	}

	denial{}.check(t, create(owner, space))
	needsTemplate("first").check(t, create(stranger, space))

	t.Run("a second one that does not exempt the person", func(t *testing.T) {
		approve(t, "second", object{"namespaces": []any{space}})
		needsTemplate("first, second").check(t, create(owner, space))
		denial{}.check(t, create(owner, other))
	})
	t.Run("a second one that exempts the person too", func(t *testing.T) {
		approve(t, "third", object{"namespaces": []any{space}, "exemptSubjects": exempts(owner)})
		denial{}.check(t, create(owner, space))
	})
	for _, enforcement := range []string{"Warn", "Audit"} {
		t.Run("a second one that does not exempt the person and refuses nothing either: "+enforcement, func(t *testing.T) {
			approve(t, "lax", object{"namespaces": []any{space}})
			enforce(t, "lax", enforcement)
			eventually(t, "the approval refuses nothing", func() string { return denial{}.complaint(create(owner, space)) })
			needsTemplate("first, lax").check(t, create(stranger, space))
		})
	}
	t.Run("an approval that says nothing of enforcement denies", func(t *testing.T) {
		approve(t, "silent", object{"namespaces": []any{other}})
		if got := acting(t, nil, "").field(allApprovals, "silent", "spec", "enforcement"); got != "Deny" {
			t.Errorf("it was stored with enforcement %q", got)
		}
		needsTemplate("silent").check(t, create(owner, other))
	})
	t.Run("only those pass whom both exempt", func(t *testing.T) {
		ann, bea := newOwner(t, "ann-of-two"), newOwner(t, "bea-of-two")
		approve(t, "left", object{"namespaces": []any{other}, "exemptSubjects": append(exempts(ann), exempts(owner)...)})
		approve(t, "right", object{"namespaces": []any{other}, "exemptSubjects": append(exempts(owner), exempts(bea)...)})
		denial{}.check(t, create(owner, other))
		needsTemplate("left, right").check(t, create(ann, other))
		needsTemplate("left, right").check(t, create(bea, other))
	})
	t.Run("without an approval there is nothing to refuse", func(t *testing.T) {
		denial{}.check(t, create(owner, other))
	})
}

// Names of users and groups are compared literally, even if they contain the separators of the annotation.
func TestSubjectsOfUnusualNames(t *testing.T) {
	t.Parallel()
	const (
		directoryUser  = "cn=Ann Example,ou=people,dc=example,dc=com"
		directoryGroup = "cn=operators,ou=groups,dc=example,dc=com"
		reserved       = "a%b,c;d|e>f"
	)
	space := namespace(t)
	user := func(name string, groups ...string) *controlplane.User {
		t.Helper()
		made := harness.User(t, shared.Plane(t), name, gen.Group(groups...))
		harness.Grant(t, shared.Plane(t), made, "", ownership...)
		harness.Bind(t, shared.Plane(t), made, "golden", "stencil-template-user")
		return made
	}
	subject := func(kind, name string) object { return object{"kind": kind, "name": name} }
	approve(t, "unusual", object{
		"namespaces":     []any{space},
		"exemptSubjects": []any{subject("User", directoryUser), subject("Group", directoryGroup), subject("User", reserved), subject("User", "x%2Cy")},
		"templates":      []any{object{"namespace": "golden", "name": "fedora"}},
		"subjects":       []any{subject("User", directoryUser), subject("Group", directoryGroup), subject("User", reserved), subject("User", "x%2Cy")},
	})
	for name, tc := range map[string]struct {
		as    *controlplane.User
		named bool
	}{
		"a user of a directory":                             {user(directoryUser), true},
		"a member of a group of a directory":                {user("unusual-member", directoryGroup), true},
		"a user with all reserved characters":               {user(reserved), true},
		"a user whose name looks encoded":                   {user("x%2Cy"), true},
		"a user whose name looks so when decoded":           {user("x,y"), false},
		"a user whose name is a part":                       {user("cn=Ann Example"), false},
		"a user whose name is the last part":                {user("dc=com"), false},
		"a member of a group that is a part":                {user("unusual-part", "cn=operators", "dc=com", "ou=groups"), false},
		"a member of a group that is called like the user":  {user("unusual-swap", directoryUser), false},
		"a user who is called like the group":               {user(directoryGroup), false},
		"a user who is called as the annotation writes one": {user("g:" + directoryGroup), false},
		"a user with a part of the reserved characters":     {user("a%b"), false},
		"a user with the encoded reserved characters":       {user("a%25b%2Cc%3Bd%7Ce%3Ef"), false},
	} {
		t.Run(name, func(t *testing.T) {
			exempt, listed := needsTemplate("unusual"), notListed("unusual", "golden/fedora")
			if tc.named {
				exempt, listed = denial{}, denial{}
			}
			exempt.check(t, dry(t, tc.as, space).create(plain("a")))
			listed.check(t, dry(t, tc.as, space).create(templated("a", "golden/fedora")))
		})
	}
	// Exempt users pass in any case, so the subjects of the approval are tested without exemptions.
	t.Run("whom it serves", func(t *testing.T) {
		served := namespace(t)
		approve(t, "serves", object{"namespaces": []any{served}, "templates": []any{object{"namespace": "golden", "name": "fedora"}},
			"subjects": []any{subject("Group", directoryGroup), subject("User", reserved)}})
		create := func(as *controlplane.User) controlplane.Result {
			return dry(t, as, served).create(templated("a", "golden/fedora"))
		}
		denial{}.check(t, create(user("unusual-member", directoryGroup)))
		denial{}.check(t, create(user(reserved)))
		notListed("serves", "golden/fedora").check(t, create(user("unusual-part", "cn=operators", "dc=com")))
		notListed("serves", "golden/fedora").check(t, create(owner))
	})
}
