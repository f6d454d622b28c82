package policies_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

func TestMachinesInAGovernedNamespaceComeFromTemplates(t *testing.T) {
	t.Parallel()
	space := namespace(t)
	admin := acting(t, nil, space)
	for _, name := range []string{"stored", "deleted"} {
		mustPass(t, admin.create(plain(name)))
	}
	mustPass(t, admin.create(templated("rendered", "golden/fedora")))
	approve(t, "governs", object{"namespaces": []any{space}})

	account := harness.User(t, shared.Plane(t), "system:serviceaccount:"+space+":robot", gen.Group("system:serviceaccounts", "system:serviceaccounts:"+space))
	harness.Grant(t, shared.Plane(t), account, space, ownership...)
	const spec = `{"spec": {"runStrategy": "Always"}}`
	type request = func(as requests) controlplane.Result
	create := func(manifest string) request {
		return func(as requests) controlplane.Result { return as.create(manifest) }
	}
	apply := func(manifest string) request {
		return func(as requests) controlplane.Result { return as.apply(manifest) }
	}
	patch := func(name, change string, subresources ...string) request {
		return func(as requests) controlplane.Result { return as.patch(vms, name, change, subresources...) }
	}
	started := strings.Replace(plain("stored"), "Halted", "Always", 1)
	cases := map[string]struct {
		as      *controlplane.User // owner when nil
		request request
		want    denial
	}{
		"a machine without a template is created": {request: create(plain("a")), want: needsTemplate("governs")},
		"it is created in the old version of the API": {
			request: create(vm("v1alpha3", object{"name": "a"}, nil)), want: needsTemplate("governs"),
		},
		"it is created with a name that is yet to be made": {
			request: create(vm("v1", object{"generateName": "a-"}, nil)), want: needsTemplate("governs"),
		},
		"it is created by kubectl apply": {
			request: func(as requests) controlplane.Result {
				return kubectl(as.t, owner, plain("a"), "apply", "--namespace", space, "--dry-run=server", "-f", "-")
			},
			want: needsTemplate("governs"),
		},
		"it is created by server-side apply":         {request: apply(plain("a")), want: needsTemplate("governs")},
		"it is created by a service account":         {as: account, request: create(plain("a")), want: needsTemplate("governs")},
		"it is created by the cluster administrator": {as: shared.Plane(t).Admin(), request: create(plain("a")), want: needsTemplate("governs")},
		"it is created with no metadata but the name, and no annotations": {
			request: create(vm("v1", object{"name": "a", "annotations": nil, "labels": nil}, nil)), want: needsTemplate("governs"),
		},
		"its reference is null, which the API server takes for an empty one": {
			request: func(as requests) controlplane.Result {
				as.lax = true
				return as.create(strings.Replace(templated("a", "x"), `"x"`, "null", 1))
			},
			want: malformed,
		},
		"its reference is spelt with capital letters": {
			request: create(vm("v1", object{"name": "a", "annotations": object{"Template.kubevirt.io/Template-Ref": "golden/fedora"}}, nil)),
			want:    needsTemplate("governs"),
		},
		"its reference is a label": {
			request: create(vm("v1", object{"name": "a", "labels": object{templateRef: "fedora"}}, nil)), want: needsTemplate("governs"),
		},
		"it claims to be rendered, and names no template": {
			request: create(vm("v1", object{"name": "a", "annotations": object{"template.kubevirt.io/rendered": `{"namespace":"golden","name":"fedora"}`},
				"labels": object{"vm.kubevirt.io/template": "fedora"}}, nil)),
			want: needsTemplate("governs"),
		},
		"a machine with a template is created":          {request: create(templated("a", "golden/fedora"))},
		"KubeVirt creates a machine without a template": {as: controller, request: create(plain("a"))},
		"the spec of a stored one is merged":            {request: patch("stored", spec), want: frozen("governs")},
		"the spec of a stored one is patched in JSON": {
			request: func(as requests) controlplane.Result {
				return as.patchJSON(vms, "stored", `[{"op": "replace", "path": "/spec/runStrategy", "value": "Always"}]`)
			},
			want: frozen("governs"),
		},
		"the spec of a stored one gets a field": {
			request: patch("stored", `{"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}`), want: frozen("governs"),
		},
		"the spec of a stored one is applied": {request: apply(started), want: frozen("governs")},
		"the spec of a stored one is replaced": {
			request: func(as requests) controlplane.Result { return as.replace(started) }, want: frozen("governs"),
		},
		"the spec of a stored one gets a machine type, as KubeVirt adds it": {
			request: patch("stored", `{"spec": {"template": {"spec": {"domain": {"machine": {"type": "q35"}}}}}}`), want: frozen("governs"),
		},
		"the spec of a stored one gets an architecture by server-side apply": {
			request: apply(encode(object{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": object{"name": "stored"},
				"spec": object{"template": object{"spec": object{"architecture": "amd64"}}}})),
			want: frozen("governs"),
		},
		"the spec of a stored one gets a UUID, with managed fields of somebody else": {
			request: func(as requests) controlplane.Result {
				return as.patchJSON(vms, "stored", `[{"op": "replace", "path": "/metadata/managedFields", "value": [{"manager": "x", "operation": "Update",
					"apiVersion": "kubevirt.io/v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:runStrategy": {}}}}]},
					{"op": "add", "path": "/spec/template/spec/domain/firmware", "value": {"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223"}}]`)
			},
			want: frozen("governs"),
		},
		"the spec of a stored one gets a machine type, and managed fields are reset": {
			request: func(as requests) controlplane.Result {
				return as.patchJSON(vms, "stored", `[{"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
					{"op": "add", "path": "/spec/template/spec/domain/machine", "value": {"type": "q35"}}]`)
			},
			want: frozen("governs"),
		},
		"a label changes together with the spec": {
			request: patch("stored", `{"metadata": {"labels": {"a": "b"}}, "spec": {"runStrategy": "Always"}}`), want: frozen("governs"),
		},
		"the administrator changes the spec":              {as: shared.Plane(t).Admin(), request: patch("stored", spec), want: frozen("governs")},
		"KubeVirt starts a stored machine":                {as: virtAPI, request: patch("stored", spec)},
		"the spec of a stored one is sent again":          {request: patch("stored", `{"spec": {"runStrategy": "Halted"}}`)},
		"a stored one is labelled":                        {request: patch("stored", `{"metadata": {"labels": {"a": "b"}}}`)},
		"a stored one is annotated":                       {request: patch("stored", `{"metadata": {"annotations": {"a": "b"}}}`)},
		"a stored one gets a finalizer":                   {request: patch("stored", `{"metadata": {"finalizers": ["example.com/a"]}}`), want: ownershipClosed},
		"a stored one gets a status":                      {request: patch("stored", `{"status": {"created": true}}`, "status"), want: statusClosed},
		"a write to status cannot bring a new spec":       {request: patch("stored", spec, "status")},
		"a stored one is deleted":                         {request: func(as requests) controlplane.Result { return as.delete(vms, "deleted") }},
		"the spec of one with a template is for webhooks": {request: patch("rendered", spec)},
		"a stored one gets a reference": {
			request: patch("stored", `{"metadata": {"annotations": {"`+templateRef+`": "golden/fedora"}}}`),
			want: denial{"template-reference", "annotation template.kubevirt.io/template-ref cannot be added to a stored VirtualMachine; " +
				"a template is rendered only when the VirtualMachine is created: leave the annotation out, " +
				"or delete this VirtualMachine and create it with the annotation"},
		},
		"one with a template loses its reference": {
			request: patch("rendered", `{"metadata": {"annotations": null}}`),
			want: denial{"template-reference", "annotation template.kubevirt.io/template-ref of a stored VirtualMachine cannot be removed; " +
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
				tc.want.check(t, tc.request(dry(t, as, space)))
			})
		}
	})
	t.Run("without a dry run the answers are the same", func(t *testing.T) {
		stores := acting(t, owner, space)
		needsTemplate("governs").check(t, stores.create(plain("real")))
		frozen("governs").check(t, stores.patch(vms, "stored", spec))
		denial{}.check(t, stores.create(templated("real", "golden/fedora")))
		denial{}.check(t, stores.label(vms, "stored", "real=true"))
		denial{}.check(t, stores.delete(vms, "deleted"))
		left, err := stores.to(vms).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, vm := range left.Items {
			names = append(names, vm.GetName())
		}
		if diff := cmp.Diff([]string{"real", "rendered", "stored"}, names); diff != "" {
			t.Errorf("VirtualMachines (-want +got):\n%s", diff)
		}
		if got := stores.field(vms, "stored", "spec", "runStrategy"); got != "Halted" {
			t.Errorf("runStrategy is now %s", got)
		}
	})
}
