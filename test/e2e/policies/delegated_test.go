package policies_test

import (
	"fmt"
	"maps"
	"path"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

var (
	withSpec = denial{"delegated-machines", "the API server of templates sends VirtualMachines without spec, which the template makes: send a " +
		"VirtualMachine with a spec as a user who may create VirtualMachines"}
	fromTemplatesOnly = denial{"delegated-machines", "the API server of templates creates VirtualMachines from templates only, and for a user whose " +
		"name is in annotation template.kubevirt.io/created-by"}
)

// A client with the token of stencil-apiserver sends a spec, which the server never sends, while no webhook is called: the API server itself records
// that there was a spec, regardless of the managed fields in the request.
func TestTheServersTokenSendsNoSpec(t *testing.T) {
	t.Parallel()
	space := namespace(t)
	server, err := install.Options{}.APIServerUser(shared.Plane(t))
	if err != nil {
		t.Fatal(err)
	}
	harness.Grant(t, shared.Plane(t), server, "", ownership...)
	harness.Bind(t, shared.Plane(t), server, "golden", "stencil-template-user")
	namesTheServer(t, server.Name)

	delegated := func(metadata object) object {
		all := object{"name": "a", "annotations": object{templateRef: "golden/fedora", "template.kubevirt.io/created-by": "ada"}}
		maps.Copy(all, metadata)
		return object{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": all, "spec": vmSpec()}
	}
	entry := func(manager string, fields object) object {
		return object{"manager": manager, "operation": "Update", "apiVersion": "kubevirt.io/v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}
	}
	annotations := object{"f:metadata": object{"f:annotations": object{".": object{}}}}
	forAda := map[string][]string{"delegation.template.kubevirt.io/user": {"ada"}}
	create := func(extra map[string][]string, manifest object, manager string) controlplane.Result {
		config := shared.Plane(t).AdminConfig()
		config.Impersonate = rest.ImpersonationConfig{UserName: server.Name, Groups: server.Groups, Extra: extra}
		resource := vms
		resource.Version = path.Base(manifest["apiVersion"].(string))
		_, err := clientOf(t, config).Resource(resource).Namespace(space).Create(lasting(t), &unstructured.Unstructured{Object: manifest},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: manager})
		return answered(err)
	}
	eventually(t, "the policy knows the server", func() string { return withSpec.complaint(create(forAda, delegated(nil), "")) })

	old := delegated(nil)
	old["apiVersion"] = "kubevirt.io/v1alpha3"
	noReference := delegated(nil)
	noReference["metadata"] = object{"name": "a"}
	for name, tc := range map[string]struct {
		manifest object
		manager  string
		extra    map[string][]string
		want     denial
	}{
		"a spec":                               {manifest: delegated(nil), want: withSpec},
		"by a field manager of another name":   {manifest: delegated(nil), manager: "kube-apiserver", want: withSpec},
		"through the old version of the API":   {manifest: old, want: withSpec},
		"with a reset of the managed fields":   {manifest: delegated(object{"managedFields": []any{object{}}}), want: withSpec},
		"with no managed fields":               {manifest: delegated(object{"managedFields": []any{}}), want: withSpec},
		"with managed fields of another":       {manifest: delegated(object{"managedFields": []any{entry("other", annotations)}}), want: withSpec},
		"with managed fields of its own":       {manifest: delegated(object{"managedFields": []any{entry("me", annotations)}}), manager: "me", want: withSpec},
		"with managed fields that are no such": {manifest: delegated(object{"managedFields": []any{entry("me", object{"x": object{}})}}), manager: "me", want: withSpec},
		"without a reference":                  {manifest: noReference, want: fromTemplatesOnly},
		"for nobody":                           {manifest: delegated(nil), extra: map[string][]string{}, want: fromTemplatesOnly},
	} {
		t.Run(name, func(t *testing.T) {
			extra := tc.extra
			if extra == nil {
				extra = forAda
			}
			tc.want.check(t, create(extra, tc.manifest, tc.manager))
		})
	}
	t.Run("by server-side apply", func(t *testing.T) {
		config := shared.Plane(t).AdminConfig()
		config.Impersonate = rest.ImpersonationConfig{UserName: server.Name, Groups: server.Groups, Extra: forAda}
		_, err := clientOf(t, config).Resource(vms).Namespace(space).Apply(lasting(t), "a", &unstructured.Unstructured{Object: delegated(nil)},
			metav1.ApplyOptions{FieldManager: "me", DryRun: []string{metav1.DryRunAll}})
		withSpec.check(t, answered(err))
	})
	t.Run("another user with the same spec", func(t *testing.T) {
		denial{}.check(t, dry(t, owner, space).create(templated("a", "golden/fedora")))
	})
}

// namesTheServer configures the policy with a user as stencil-apiserver until the test ends. The shared plane has no such server.
func namesTheServer(t *testing.T, name string) {
	t.Helper()
	const policy = "stencil-delegated-machines"
	variables, found, err := unstructured.NestedSlice(acting(t, nil, "").get(admissionPolicies, policy).Object, "spec", "variables")
	if err != nil || !found {
		t.Fatalf("the variables of %s: %v", policy, err)
	}
	for i, each := range variables {
		if each.(object)["name"] != "apiserverUser" {
			continue
		}
		set := func(expression string) {
			change := fmt.Sprintf(`[{"op": "replace", "path": "/spec/variables/%d/expression", "value": %q}]`, i, expression)
			_, err := api(t, nil).Resource(admissionPolicies).Patch(lasting(t), policy, types.JSONPatchType, []byte(change), metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
			}
		}
		t.Cleanup(func() { set("''") })
		set("'" + name + "'")
		return
	}
	t.Fatalf("%s has no setting apiserverUser", policy)
}
