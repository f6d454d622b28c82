package policies_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

func notListed(approval, template string) denial {
	return denial{"approved-templates", "TemplateApproval " + approval + " does not approve template " + template +
		" for you in this namespace, and no other does: name one that is approved"}
}

// A template that no approval lists is denied even if no webhook exists.
func TestATemplateThatNoApprovalListsIsNotUsed(t *testing.T) {
	t.Parallel()
	space, other, copper := namespace(t), namespace(t), namespace(t)
	for _, catalogue := range []string{copper, space} {
		harness.Bind(t, shared.Plane(t), owner, catalogue, "stencil-template-user")
	}
	harness.Bind(t, shared.Plane(t), virtAPI, "golden", "stencil-template-user")
	approve(t, "lists", object{"namespaces": []any{space}, "templates": []any{
		object{"namespace": "golden", "name": "fedora"}, object{"namespace": copper, "selector": object{"matchLabels": object{"a": "b"}}},
	}})
	create := func(as *controlplane.User, namespace, reference string) controlplane.Result {
		return dry(t, as, namespace).create(templated("a", reference))
	}
	t.Run("each", func(t *testing.T) {
		for name, tc := range map[string]struct {
			as              *controlplane.User // owner when nil
			namespace, from string             // space when empty
			want            denial
		}{
			"one that is listed by name":                              {from: "golden/fedora"},
			"one of a namespace that is listed by labels":             {from: copper + "/anything"},
			"another of that namespace":                               {from: "golden/windows", want: notListed("lists", "golden/windows")},
			"one whose name begins like it":                           {from: "golden/fedora2", want: notListed("lists", "golden/fedora2")},
			"one of the namespace of the machine":                     {from: "fedora", want: notListed("lists", space+"/fedora")},
			"the administrator is no exception":                       {as: shared.Plane(t).Admin(), from: "golden/windows", want: notListed("lists", "golden/windows")},
			"KubeVirt's own users are one":                            {as: virtAPI, from: "golden/windows"},
			"where no approval governs, every template may be used":   {namespace: other, from: "golden/windows"},
			"a reference that is none is refused for what it is":      {from: "golden/fedora/x", want: malformed},
			"a template is listed, and still takes permission to use": {as: stranger, from: "golden/fedora", want: unusable},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				as, where := tc.as, tc.namespace
				if as == nil {
					as = owner
				}
				if where == "" {
					where = space
				}
				tc.want.check(t, create(as, where, tc.from))
			})
		}
	})
	t.Run("an approval that warns refuses nothing", func(t *testing.T) {
		enforce(t, "lists", "Warn")
		eventually(t, "the approval warns", func() string { return denial{}.complaint(create(owner, space, "golden/windows")) })
		enforce(t, "lists", "Deny")
		eventually(t, "the approval denies", func() string {
			return notListed("lists", "golden/windows").complaint(create(owner, space, "golden/windows"))
		})
	})
	t.Run("an approval that does not serve the person approves nothing for them", func(t *testing.T) {
		serve := func(change string) { mustPass(t, acting(t, nil, "").patch(allApprovals, "lists", change)) }
		serve(`{"spec": {"subjects": [{"kind": "User", "name": "somebody"}]}}`)
		eventually(t, "the approval serves somebody else", func() string {
			return notListed("lists", "golden/fedora").complaint(create(owner, space, "golden/fedora"))
		})
		serve(`{"spec": {"subjects": [{"kind": "User", "name": "somebody"}, {"kind": "User", "name": "owner"}]}}`)
		eventually(t, "the approval serves the owner", func() string { return denial{}.complaint(create(owner, space, "golden/fedora")) })
	})
}

// A template that one approval lists for all users is approved regardless of the others; one that is listed for some is approved for these only.
func TestSeveralApprovalsListTemplatesTogether(t *testing.T) {
	t.Parallel()
	space := namespace(t)
	golden := func(names ...string) (templates []any) {
		for _, name := range names {
			templates = append(templates, object{"namespace": "golden", "name": name})
		}
		return templates
	}
	create := func(as *controlplane.User, reference string) controlplane.Result {
		return dry(t, as, space).create(templated("a", reference))
	}
	approve(t, "lists-left", object{"namespaces": []any{space}, "templates": golden("fedora")})
	approve(t, "lists-right", object{"namespaces": []any{space}, "templates": golden("fedora", "ubuntu")})
	denial{}.check(t, create(owner, "golden/fedora"))
	denial{}.check(t, create(owner, "golden/ubuntu"))
	notListed("lists-left, lists-right", "golden/windows").check(t, create(owner, "golden/windows"))

	t.Run("an approval for some", func(t *testing.T) {
		admins := newOwner(t, "uses-windows")
		harness.Bind(t, shared.Plane(t), admins, "golden", "stencil-template-user")
		approve(t, "lists-some", object{"namespaces": []any{space}, "templates": golden("fedora", "windows"), "subjects": []any{object{"kind": "User", "name": admins.Name}}})
		denial{}.check(t, create(admins, "golden/windows"))
		denial{}.check(t, create(admins, "golden/ubuntu"))
		denial{}.check(t, create(owner, "golden/fedora"))
		notListed("lists-left, lists-right, lists-some", "golden/windows").check(t, create(owner, "golden/windows"))
	})
	t.Run("a refusal names three of them", func(t *testing.T) {
		for _, name := range []string{"lists-upper", "lists-under"} {
			store(t, name, object{"namespaces": []any{space}, "templates": golden("fedora")})
		}
		eventually(t, "the refusal names three approvals", func() string {
			return notListed("lists-left, lists-right, lists-under and 1 more", "golden/windows").complaint(create(owner, "golden/windows"))
		})
	})
}
