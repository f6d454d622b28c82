package policies_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

func notListed(approval, template string) refusal {
	return refusal{"approved-templates", "TemplateApproval " + approval + " does not approve template " + template +
		" for you in this namespace, and no other does: name one that is approved"}
}

var keptList = refusal{"governed-label", "annotation stencil.kubevirt.io/approved-templates of a Namespace is kept by Stencil and follows from the " +
	"TemplateApprovals: leave it as it is stored, or have it changed by somebody who may update templateapprovals.stencil.kubevirt.io"}

// What no approval lists is refused although no webhook is there to judge it.
func TestATemplateThatNoApprovalListsIsNotUsed(t *testing.T) {
	space, other, copper := namespace(t), namespace(t), namespace(t)
	for _, catalogue := range []string{copper, space} {
		if err := shared.Plane(t).Bind(t.Context(), owner, catalogue, "stencil-template-user"); err != nil {
			t.Fatal(err)
		}
	}
	if err := shared.Plane(t).Bind(t.Context(), virtAPI, "golden", "stencil-template-user"); err != nil {
		t.Fatal(err)
	}
	approve(t, "lists", object{"namespaces": []any{space}, "templates": []any{
		object{"namespace": "golden", "name": "fedora"}, object{"namespace": copper, "selector": object{"matchLabels": object{"a": "b"}}},
	}})
	create := func(as *controlplane.User, namespace, reference string) controlplane.Result {
		return kubectl(t, as, templated("a", reference), "create", "--namespace", namespace, "--dry-run=server", "-f", "-")
	}
	t.Run("each", func(t *testing.T) {
		for name, tc := range map[string]struct {
			as              *controlplane.User // owner when nil
			namespace, from string             // space when empty
			want            refusal
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
		mustKubectl(t, "", "patch", "templateapproval", "lists", "--type=merge", "--patch", `{"spec": {"enforcement": "Warn"}}`)
		eventually(t, func() string { return refusal{}.complaint(create(owner, space, "golden/windows")) })
		mustKubectl(t, "", "patch", "templateapproval", "lists", "--type=merge", "--patch", `{"spec": {"enforcement": "Deny"}}`)
		eventually(t, func() string {
			return notListed("lists", "golden/windows").complaint(create(owner, space, "golden/windows"))
		})
	})
	t.Run("an approval that does not serve the person approves nothing for them", func(t *testing.T) {
		mustKubectl(t, "", "patch", "templateapproval", "lists", "--type=merge", "--patch", `{"spec": {"subjects": [{"kind": "User", "name": "somebody"}]}}`)
		eventually(t, func() string {
			return notListed("lists", "golden/fedora").complaint(create(owner, space, "golden/fedora"))
		})
		mustKubectl(t, "", "patch", "templateapproval", "lists", "--type=merge", "--patch", `{"spec": {"subjects": [{"kind": "User", "name": "somebody"}, {"kind": "User", "name": "owner"}]}}`)
		eventually(t, func() string { return refusal{}.complaint(create(owner, space, "golden/fedora")) })
	})
}

// One approval does not see another. What both list is in an annotation that Stencil keeps; without it, no more than what each of them lists passes.
func TestSeveralApprovalsListTemplatesTogether(t *testing.T) {
	space := namespace(t)
	approve(t, "left", object{"namespaces": []any{space}, "templates": []any{object{"namespace": "golden", "name": "fedora"}}})
	approve(t, "right", object{"namespaces": []any{space}, "templates": []any{
		object{"namespace": "golden", "name": "fedora"}, object{"namespace": "golden", "name": "ubuntu"},
	}})
	manager, err := install.Options{}.ManagerUser(shared.Plane(t))
	if err != nil {
		t.Fatal(err)
	}
	create := func(reference string) controlplane.Result {
		return kubectl(t, owner, templated("a", reference), "create", "--namespace", space, "--dry-run=server", "-f", "-")
	}
	list := func(as *controlplane.User, value any, more ...string) controlplane.Result {
		change := encode(object{"metadata": object{"annotations": object{"stencil.kubevirt.io/approved-templates": value}}})
		return kubectl(t, as, "", append([]string{"patch", "namespace", space, "--type=merge", "--patch", change}, more...)...)
	}
	refusal{}.check(t, create("golden/fedora"))
	notListed("left", "golden/ubuntu").check(t, create("golden/ubuntu"))

	for value, listed := range map[string]bool{
		"golden/fedora,golden/ubuntu": true,
		"golden/*":                    true,
		"*":                           true,
		"golden/fedora":               false,
		"golden/ubuntu2,old/ubuntu":   false,
		"old-golden/*,ubuntu":         false,
		"ubuntu":                      false,
	} {
		t.Run("the annotation says "+value, func(t *testing.T) {
			refusal{}.check(t, list(manager, value))
			eventually(t, func() string {
				if listed {
					return refusal{}.complaint(create("golden/ubuntu"))
				}
				return notListed("left", "golden/ubuntu").complaint(create("golden/ubuntu"))
			})
		})
	}
	t.Run("people do not write it", func(t *testing.T) {
		labeller := person(t, "lister", labelling)
		keptList.check(t, list(labeller, "golden/windows", "--dry-run=server"))
		keptList.check(t, list(labeller, nil, "--dry-run=server"))
		keptList.check(t, list(labeller, "golden/windows", "--dry-run=server", "--subresource=status"))
		refusal{}.check(t, list(nil, "golden/windows", "--dry-run=server"))
	})
	t.Run("nor bring it along with a new namespace", func(t *testing.T) {
		maker := person(t, "maker-of-namespaces")
		if err := shared.Plane(t).Grant(t.Context(), maker, "", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create"}}); err != nil {
			t.Fatal(err)
		}
		made := func(annotations object) controlplane.Result {
			manifest := encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "brought", "annotations": annotations}})
			return kubectl(t, maker, manifest, "create", "--dry-run=server", "-f", "-")
		}
		keptList.check(t, made(object{"stencil.kubevirt.io/approved-templates": "*"}))
		refusal{}.check(t, made(object{"note": "mine"}))
	})
}
