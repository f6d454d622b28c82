package policies_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
)

func TestMachinesInAGovernedNamespaceComeFromTemplates(t *testing.T) {
	space := namespace(t)
	for _, name := range []string{"stored", "deleted"} {
		mustKubectl(t, plain(name), "create", "--namespace", space, "-f", "-")
	}
	mustKubectl(t, templated("rendered", "golden/fedora"), "create", "--namespace", space, "-f", "-")
	approve(t, "governs", object{"namespaces": []any{space}})

	account, err := shared.Plane(t).User("system:serviceaccount:"+space+":robot", "system:serviceaccounts", "system:serviceaccounts:"+space)
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.Plane(t).Grant(t.Context(), account, space, ownership...); err != nil {
		t.Fatal(err)
	}
	const spec = `{"spec": {"runStrategy": "Always"}}`
	create := []string{"create", "-f", "-"}
	patch := func(name, kind, change string, more ...string) []string {
		return append([]string{"patch", "virtualmachine", name, "--type=" + kind, "--patch", change}, more...)
	}
	cases := map[string]struct {
		as        *controlplane.User // owner when nil
		stdin     string
		arguments []string
		want      refusal
	}{
		"a machine without a template is created": {stdin: plain("a"), arguments: create, want: needsTemplate("governs")},
		"it is created in the old version of the API": {
			stdin: machine("v1alpha3", object{"name": "a"}, nil), arguments: create, want: needsTemplate("governs"),
		},
		"it is created with a name that is yet to be made": {
			stdin: machine("v1", object{"generateName": "a-"}, nil), arguments: create, want: needsTemplate("governs"),
		},
		"it is created by kubectl apply":             {stdin: plain("a"), arguments: []string{"apply", "-f", "-"}, want: needsTemplate("governs")},
		"it is created by server-side apply":         {stdin: plain("a"), arguments: []string{"apply", "--server-side", "-f", "-"}, want: needsTemplate("governs")},
		"it is created by a service account":         {as: account, stdin: plain("a"), arguments: create, want: needsTemplate("governs")},
		"it is created by the cluster administrator": {as: shared.Plane(t).Admin(), stdin: plain("a"), arguments: create, want: needsTemplate("governs")},
		"it is created with no metadata but the name, and no annotations": {
			stdin: machine("v1", object{"name": "a", "annotations": nil, "labels": nil}, nil), arguments: create, want: needsTemplate("governs"),
		},
		"its reference is null, which the API server takes for an empty one": {
			stdin:     strings.Replace(templated("a", "x"), `"x"`, "null", 1),
			arguments: append(create, "--validate=false"), want: malformed,
		},
		"its reference is spelt with capital letters": {
			stdin:     machine("v1", object{"name": "a", "annotations": object{"Template.kubevirt.io/Template-Ref": "golden/fedora"}}, nil),
			arguments: create, want: needsTemplate("governs"),
		},
		"its reference is a label": {
			stdin: machine("v1", object{"name": "a", "labels": object{templateRef: "fedora"}}, nil), arguments: create, want: needsTemplate("governs"),
		},
		"it claims to be rendered, and names no template": {
			stdin: machine("v1", object{"name": "a", "annotations": object{"template.kubevirt.io/rendered": `{"namespace":"golden","name":"fedora"}`},
				"labels": object{"vm.kubevirt.io/template": "fedora"}}, nil),
			arguments: create, want: needsTemplate("governs"),
		},
		"a machine with a template is created":            {stdin: templated("a", "golden/fedora"), arguments: create},
		"KubeVirt creates a machine without a template":   {as: controller, stdin: plain("a"), arguments: create},
		"the spec of a stored one is merged":              {arguments: patch("stored", "merge", spec), want: frozen("governs")},
		"the spec of a stored one is patched in JSON":     {arguments: patch("stored", "json", `[{"op": "replace", "path": "/spec/runStrategy", "value": "Always"}]`), want: frozen("governs")},
		"the spec of a stored one gets a field":           {arguments: patch("stored", "merge", `{"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}`), want: frozen("governs")},
		"the spec of a stored one is applied":             {stdin: strings.Replace(plain("stored"), "Halted", "Always", 1), arguments: []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, want: frozen("governs")},
		"the spec of a stored one is replaced":            {stdin: strings.Replace(plain("stored"), "Halted", "Always", 1), arguments: []string{"replace", "-f", "-"}, want: frozen("governs")},
		"a label changes together with the spec":          {arguments: patch("stored", "merge", `{"metadata": {"labels": {"a": "b"}}, "spec": {"runStrategy": "Always"}}`), want: frozen("governs")},
		"the administrator changes the spec":              {as: shared.Plane(t).Admin(), arguments: patch("stored", "merge", spec), want: frozen("governs")},
		"KubeVirt starts a stored machine":                {as: virtAPI, arguments: patch("stored", "merge", spec)},
		"the spec of a stored one is sent again":          {arguments: patch("stored", "merge", `{"spec": {"runStrategy": "Halted"}}`)},
		"a stored one is labelled":                        {arguments: []string{"label", "virtualmachine", "stored", "a=b"}},
		"a stored one is annotated":                       {arguments: []string{"annotate", "virtualmachine", "stored", "a=b"}},
		"a stored one gets a finalizer":                   {arguments: patch("stored", "merge", `{"metadata": {"finalizers": ["example.com/a"]}}`)},
		"a stored one gets a status":                      {arguments: patch("stored", "merge", `{"status": {"created": true}}`, "--subresource=status")},
		"a write to status cannot bring a new spec":       {arguments: patch("stored", "merge", spec, "--subresource=status")},
		"a stored one is deleted":                         {arguments: []string{"delete", "virtualmachine", "deleted"}},
		"the spec of one with a template is for webhooks": {arguments: patch("rendered", "merge", spec)},
		"a stored one gets a reference": {
			arguments: patch("stored", "merge", `{"metadata": {"annotations": {"`+templateRef+`": "golden/fedora"}}}`),
			want: refusal{"template-reference", "annotation template.kubevirt.io/template-ref cannot be added to a stored VirtualMachine; " +
				"a template is rendered only when the VirtualMachine is created: leave the annotation out, " +
				"or delete this VirtualMachine and create it with the annotation"},
		},
		"one with a template loses its reference": {
			arguments: patch("rendered", "merge", `{"metadata": {"annotations": null}}`),
			want: refusal{"template-reference", "annotation template.kubevirt.io/template-ref of a stored VirtualMachine cannot be removed; " +
				"it records which template the VirtualMachine was rendered from: send the annotation with its stored value"},
		},
	}
	t.Run("each", func(t *testing.T) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				as := tc.as
				if as == nil {
					as = owner
				}
				tc.want.check(t, kubectl(t, as, tc.stdin, append(tc.arguments, "--namespace", space, "--dry-run=server")...))
			})
		}
	})
	t.Run("without a dry run the answers are the same", func(t *testing.T) {
		needsTemplate("governs").check(t, kubectl(t, owner, plain("real"), "create", "--namespace", space, "-f", "-"))
		frozen("governs").check(t, kubectl(t, owner, "", append(patch("stored", "merge", spec), "--namespace", space)...))
		refusal{}.check(t, kubectl(t, owner, templated("real", "golden/fedora"), "create", "--namespace", space, "-f", "-"))
		refusal{}.check(t, kubectl(t, owner, "", "label", "virtualmachine", "stored", "--namespace", space, "real=true"))
		refusal{}.check(t, kubectl(t, owner, "", "delete", "virtualmachine", "deleted", "--namespace", space))
		if got := mustKubectl(t, "", "get", "virtualmachine", "--namespace", space, "--output=jsonpath={.items[*].metadata.name}"); got != "real rendered stored" {
			t.Errorf("there are now %s", got)
		}
		if got := mustKubectl(t, "", "get", "virtualmachine", "stored", "--namespace", space, "--output=jsonpath={.spec.runStrategy}"); got != "Halted" {
			t.Errorf("runStrategy is now %s", got)
		}
	})
}
