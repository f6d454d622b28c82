package chart

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// No server answers the webhooks here, so a request passes only when the API server does not call them.
func TestWhatTheAPIServerAsksTheManagerFor(t *testing.T) {
	plane, space, users := withVMs(t, install.Options{}, "owner", namesake)
	user, exempt := users["owner"], users[controller]
	for _, user := range users {
		harness.Bind(t, plane, user, space, "stencil-template-user")
	}

	const body = `"spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}}`
	create := func(version, metadata string) string {
		return `{"apiVersion": "kubevirt.io/` + version + `", "kind": "VirtualMachine", "metadata": {` + metadata + `}, ` + body + `}`
	}
	const reference = `"annotations": {"template.kubevirt.io/template-ref": "x"}`
	cases := map[string]struct {
		as *controlplane.User // the owner when nil
		// create is a VirtualMachine in JSON; otherwise change is a kubectl command about an existing one.
		create string
		change []string
		asked  bool
		// unrendered is for requests that do not match the render webhook.
		unrendered bool
		// policy is the policy that denies the request before a validating webhook is called.
		policy string
	}{
		"a machine without annotations is created":                                {create: create("v1", `"name": "a"`)},
		"a machine with null for annotations and labels is created":               {create: create("v1", `"name": "a", "annotations": null, "labels": null`)},
		"a machine with other annotations is created":                             {create: create("v1", `"name": "a", "annotations": {"x": "y"}`)},
		"a machine with a key that only looks like the reference is created":      {create: create("v1", `"name": "a", "annotations": {"template.kubevirt.io/Template-Ref": "x"}`)},
		"a machine of the old version of the API is created":                      {create: create("v1alpha3", `"name": "a"`)},
		"a machine with a reference is created":                                   {create: create("v1", `"name": "a", `+reference), asked: true},
		"a machine with a reference and a name that is yet to be made is created": {create: create("v1", `"generateName": "a", `+reference), asked: true},
		"a machine with an empty reference is created":                            {create: create("v1", `"name": "a", "annotations": {"template.kubevirt.io/template-ref": ""}`), asked: true, policy: "template-use"},
		"a machine of the old version of the API with a reference is created":     {create: create("v1alpha3", `"name": "a", `+reference), asked: true},
		"KubeVirt creates a machine with a reference":                             {as: exempt, create: create("v1", `"name": "a", `+reference), asked: true},
		"a machine of no template is labelled":                                    {change: []string{"label", "vm", "plain", "a=b"}},
		"a machine of no template is annotated":                                   {change: []string{"annotate", "vm", "plain", "a=b"}},
		"a machine of no template gets a spec":                                    {change: []string{"patch", "vm", "plain", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`}},
		"a machine of no template gets a status":                                  {change: []string{"patch", "vm", "plain", "--subresource=status", "--type=merge", "--patch", `{"status": {"created": true}}`}},
		"a machine of no template gets a reference":                               {change: []string{"annotate", "vm", "plain", "template.kubevirt.io/template-ref=x"}, asked: true, policy: "template-reference"},
		"a rendered machine is labelled":                                          {change: []string{"label", "vm", "rendered", "a=b"}, asked: true, unrendered: true},
		"a rendered machine is annotated":                                         {change: []string{"annotate", "vm", "rendered", "a=b"}, asked: true, unrendered: true},
		"a rendered machine loses its labels":                                     {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"metadata": {"labels": null}}`}, asked: true, policy: "template-reference"},
		"a rendered machine loses everything":                                     {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"metadata": {"annotations": null}}`}, asked: true, policy: "template-reference"},
		"a rendered machine gets another spec":                                    {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"template": {"spec": {"hostname": "h"}}}}`}, asked: true},
		"a rendered machine gets another spec in the old version of the API":      {change: []string{"patch", "virtualmachines.v1alpha3.kubevirt.io", "rendered", "--type=merge", "--patch", `{"spec": {"template": {"spec": {"hostname": "h"}}}}`}, asked: true},
		"a rendered machine gets another field of spec":                           {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"dataVolumeTemplates": []}}`}, asked: true},
		"a rendered machine is started":                                           {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`}, asked: true, unrendered: true},
		"a rendered machine is started in the old version of the API":             {change: []string{"patch", "virtualmachines.v1alpha3.kubevirt.io", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`}, asked: true, unrendered: true},
		"a rendered machine is started by the former field":                       {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": null, "running": true}}`}, asked: true, unrendered: true},
		"a rendered machine loses its run strategy":                               {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": null}}`}, asked: true},
		"a rendered machine gets a parameter":                                     {change: []string{"annotate", "vm", "rendered", "parameter.template.kubevirt.io/X=y"}, asked: true, policy: "template-reference"},
		"a rendered machine gets a note of the defaults webhook":                  {change: []string{"annotate", "vm", "rendered", "defaults.template.kubevirt.io/skip=true"}, asked: true},
		"a client keeps a manifest on a rendered machine":                         {change: []string{"annotate", "vm", "rendered", "kapp.k14s.io/original={}"}, asked: true, unrendered: true},
		"a rendered machine gets what it has":                                     {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": "Halted"}}`}},
		"a rendered machine gets a finalizer":                                     {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"metadata": {"finalizers": ["example.com/a"]}}`}},
		"a rendered machine gets a status":                                        {change: []string{"patch", "vm", "rendered", "--subresource=status", "--type=merge", "--patch", `{"status": {"created": true}}`}},
		"a rendered machine is deleted":                                           {change: []string{"delete", "vm", "rendered"}},
		"KubeVirt labels a rendered machine":                                      {as: exempt, change: []string{"label", "vm", "rendered", "a=b"}},
		"KubeVirt changes a rendered machine":                                     {as: exempt, change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`}},
		"an account of the name of KubeVirt's controller changes a rendered machine": {as: users[namesake],
			change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"template": {"spec": {"hostname": "h"}}}}`}, asked: true},
		"KubeVirt puts a finalizer on a machine": {as: exempt, change: []string{"patch", "vm", "plain", "--type=merge", "--patch", `{"metadata": {"finalizers": ["example.com/a"]}}`}},
	}
	ask := func(t *testing.T, webhook string, policies bool) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				as := tc.as
				if as == nil {
					as = user
				}
				arguments := tc.change
				if tc.create != "" {
					arguments = []string{"create", "--validate=false", "-f", "-"}
				}
				result := kubectl(t, plane, as, tc.create, append(arguments, "--namespace", space, "--dry-run=server")...)
				want := ""
				switch {
				case !tc.asked:
				case policies && tc.policy != "":
					want = "ValidatingAdmissionPolicy 'stencil-" + tc.policy + "'"
				case !policies && tc.unrendered:
					want = `failed calling webhook "virtualmachine.validate.template.kubevirt.io"`
				default:
					want = `failed calling webhook "` + webhook + `"`
				}
				wantAnswer(t, want, result)
			})
		}
	}
	t.Run("to render", func(t *testing.T) {
		ask(t, "render.template.kubevirt.io", false)
		t.Run("a rendered machine loses its spec", func(t *testing.T) {
			result := kubectl(t, plane, user, "", "patch", "vm", "rendered", "--namespace", space, "--dry-run=server", "--type=merge", "--patch", `{"spec": null}`)
			wantAnswer(t, `failed calling webhook "render.template.kubevirt.io"`, result)
		})
	})
	// Without the first configuration, the error is from the other one.
	mustKubectl(t, plane, "", "delete", "mutatingwebhookconfiguration", "a-stencil-render")
	eventually(t, "the webhooks are asked", func() string {
		return missing(`failed calling webhook "virtualmachine.validate.template.kubevirt.io"`,
			kubectl(t, plane, user, "", "label", "vm", "rendered", "a=b", "--namespace", space, "--dry-run=server"))
	})
	t.Run("to judge", func(t *testing.T) { ask(t, "virtualmachine.validate.template.kubevirt.io", true) })
}

// The API server calls the webhooks for VirtualMachines without a template only in namespaces with Stencil's label.
func TestWhatTheAPIServerAsksTheManagerForInGovernedNamespaces(t *testing.T) {
	plane, space, users := withVMs(t, install.Options{}, "owner", namesake)
	// With the label value true, the policies would deny requests that the webhook has not decided.
	mustKubectl(t, plane, "", "label", "namespace", space, "stencil.kubevirt.io/governed=warn")
	const (
		render = `failed calling webhook "governed.template.kubevirt.io"`
		body   = `"spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}}`
	)
	vm := func(version, metadata string) string {
		return `{"apiVersion": "kubevirt.io/` + version + `", "kind": "VirtualMachine", "metadata": {` + metadata + `}, ` + body + `}`
	}
	change := func(name, change string, more ...string) []string {
		return append([]string{"patch", "vm", name, "--type=merge", "--patch", change}, more...)
	}
	cases := map[string]struct {
		as     *controlplane.User // the owner when nil
		create string
		change []string
		want   string
	}{
		"a machine is created":                          {create: vm("v1", `"name": "a"`), want: render},
		"a machine is created whose name is to be made": {create: vm("v1", `"generateName": "a"`), want: render},
		"a machine is created in the old version":       {create: vm("v1alpha3", `"name": "a"`), want: render},
		"a machine with a reference is created": {
			create: vm("v1", `"name": "a", "annotations": {"template.kubevirt.io/template-ref": "x"}`), want: `failed calling webhook "render.template.kubevirt.io"`,
		},
		"KubeVirt creates a machine":         {as: users[controller], create: vm("v1", `"name": "a"`)},
		"a stored machine gets a spec":       {change: change("plain", `{"spec": {"runStrategy": "Always"}}`), want: render},
		"a stored machine gets what it has":  {change: change("plain", `{"spec": {"runStrategy": "Halted"}}`)},
		"a stored machine is labelled":       {change: []string{"label", "vm", "plain", "a=b"}},
		"a stored machine is annotated":      {change: []string{"annotate", "vm", "plain", "a=b"}},
		"a stored machine gets a status":     {change: change("plain", `{"status": {"created": true}}`, "--subresource=status")},
		"a stored machine is deleted":        {change: []string{"delete", "vm", "plain"}},
		"KubeVirt changes a machine":         {as: users[controller], change: change("plain", `{"spec": {"runStrategy": "Always"}}`)},
		"an account of its name creates one": {as: users[namesake], create: vm("v1", `"name": "a"`), want: render},
		"a rendered machine gets a spec":     {change: change("rendered", `{"spec": {"template": {"spec": {"hostname": "h"}}}}`), want: `failed calling webhook "render.template.kubevirt.io"`},
		"a rendered machine is started":      {change: change("rendered", `{"spec": {"runStrategy": "Always"}}`), want: `failed calling webhook "virtualmachine.validate.template.kubevirt.io"`},
	}
	t.Run("while nobody answers, machines without a template are created and changed", func(t *testing.T) {
		for _, arguments := range [][]string{{"create", "-f", "-"}, change("plain", `{"spec": {"runStrategy": "Always"}}`)} {
			wantAnswer(t, "", kubectl(t, plane, users["owner"], vm("v1", `"name": "a"`), append(arguments, "--namespace", space, "--dry-run=server")...))
		}
	})
	// A failed call is visible only with failure policy Fail.
	mustKubectl(t, plane, "", "patch", "mutatingwebhookconfiguration", "a-stencil-render", "--type=json", "--patch",
		`[{"op": "test", "path": "/webhooks/1/name", "value": "governed.template.kubevirt.io"}, {"op": "replace", "path": "/webhooks/1/failurePolicy", "value": "Fail"}]`)
	// The API server observes the label and the webhooks a moment later.
	eventually(t, "the namespace and the webhooks are known", func() string {
		return missing(render, kubectl(t, plane, users["owner"], vm("v1", `"name": "a"`), "create", "--namespace", space, "--dry-run=server", "-f", "-"))
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			as := tc.as
			if as == nil {
				as = users["owner"]
			}
			arguments := tc.change
			if tc.create != "" {
				arguments = []string{"create", "-f", "-"}
			}
			result := kubectl(t, plane, as, tc.create, append(arguments, "--namespace", space, "--dry-run=server")...)
			wantAnswer(t, tc.want, result)
		})
	}
}

// Only a new spec of an approval is validated.
func TestWhatTheAPIServerAsksTheManagerAboutApprovals(t *testing.T) {
	plane := shared.Plane(t)
	// Stored while the definition exists, and no webhook yet.
	definitions := install.Options{}
	if err := install.Chart(t.Context(), plane, definitions); err != nil {
		t.Fatal(err)
	}
	if err := install.Uninstall(t.Context(), plane, definitions); err != nil {
		t.Fatal(err)
	}
	const manifest = `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "TemplateApproval", "metadata": {"name": "kept"},
		"spec": {"namespaces": ["none"], "templates": [{"namespace": "golden", "name": "fedora"}]}}`
	eventually(t, "the approval is stored", func() string { return kubectl(t, plane, nil, manifest, "apply", "-f", "-").Stderr })
	t.Cleanup(func() {
		if _, err := plane.Kubectl(context.WithoutCancel(t.Context()), nil, "", "delete", "templateapproval", "kept"); err != nil {
			t.Error(err)
		}
	})
	installed(t, install.Options{ManagerURL: deadURL})

	const asked = `failed calling webhook "templateapproval.validate.stencil.kubevirt.io"`
	t.Run("while nobody answers, it is stored", func(t *testing.T) {
		eventually(t, "the approval can be stored", func() string {
			return kubectl(t, plane, nil, strings.ReplaceAll(manifest, "kept", "new"), "create", "--dry-run=server", "-f", "-").Stderr
		})
	})
	t.Run("but for one that selects by what follows from it", func(t *testing.T) {
		if err := install.AwaitPolicies(t.Context(), plane); err != nil {
			t.Fatal(err)
		}
		const want = "spec.namespaceSelector: Stencil sets label stencil.kubevirt.io/governed on the namespaces that an approval selects, so " +
			"an approval cannot select namespaces by it: select namespaces by another label, or by name in spec.namespaces"
		for _, selector := range []string{
			`{"matchLabels": {"stencil.kubevirt.io/governed": "true"}}`,
			`{"matchExpressions": [{"key": "team", "operator": "Exists"}, {"key": "stencil.kubevirt.io/governed", "operator": "DoesNotExist"}]}`,
		} {
			circular := strings.Replace(strings.ReplaceAll(manifest, "kept", "new"), `"namespaces": ["none"]`, `"namespaceSelector": `+selector, 1)
			wantAnswer(t, want, kubectl(t, plane, nil, circular, "create", "--dry-run=server", "-f", "-"))
		}
	})
	// A failed call is visible only with failure policy Fail.
	mustKubectl(t, plane, "", "patch", "validatingwebhookconfiguration", "stencil-validate", "--type=json", "--patch",
		`[{"op": "test", "path": "/webhooks/3/name", "value": "templateapproval.validate.stencil.kubevirt.io"}, {"op": "replace", "path": "/webhooks/3/failurePolicy", "value": "Fail"}]`)
	change := func(content string, more ...string) controlplane.Result {
		return kubectl(t, plane, nil, "", append([]string{"patch", "templateapproval", "kept", "--dry-run=server", "--type=merge", "--patch", content}, more...)...)
	}
	eventually(t, "the webhook is asked", func() string { return missing(asked, change(`{"spec": {"enforcement": "Warn"}}`)) })
	wantAnswer(t, asked, kubectl(t, plane, nil, strings.ReplaceAll(manifest, "kept", "new"), "create", "--dry-run=server", "-f", "-"))
	for name, result := range map[string]func() controlplane.Result{
		"is labelled":          func() controlplane.Result { return change(`{"metadata": {"labels": {"a": "b"}}}`) },
		"gets a finalizer":     func() controlplane.Result { return change(`{"metadata": {"finalizers": ["example.com/a"]}}`) },
		"gets the spec it has": func() controlplane.Result { return change(`{"spec": {"enforcement": "Deny"}}`) },
		"gets a status":        func() controlplane.Result { return change(`{"status": {"templates": 1}}`, "--subresource=status") },
		"is deleted": func() controlplane.Result {
			return kubectl(t, plane, nil, "", "delete", "templateapproval", "kept", "--dry-run=server")
		},
	} {
		t.Run("a stored approval "+name, func(t *testing.T) { wantAnswer(t, "", result()) })
	}
}

// Only a new spec of a template is validated, and not through the status subresource.
func TestWhatTheAPIServerAsksTheManagerAboutTemplates(t *testing.T) {
	plane := shared.Plane(t)
	// Stored while the definition exists, and no webhook yet.
	definitions := install.Options{}
	if err := install.Chart(t.Context(), plane, definitions); err != nil {
		t.Fatal(err)
	}
	if err := install.Uninstall(t.Context(), plane, definitions); err != nil {
		t.Fatal(err)
	}
	space := namespace(t, plane)
	manifest := strings.ReplaceAll(template, "namespace: default", "namespace: "+space)
	eventually(t, "the template is stored", func() string { return kubectl(t, plane, nil, manifest, "apply", "-f", "-").Stderr })
	installed(t, install.Options{ManagerURL: deadURL})

	const asked = `failed calling webhook "virtualmachinetemplate.validate.template.kubevirt.io"`
	change := func(content string, more ...string) controlplane.Result {
		arguments := append([]string{"patch", "vmt", "kept", "--namespace", space, "--dry-run=server", "--type=merge", "--patch", content}, more...)
		return kubectl(t, plane, nil, "", arguments...)
	}
	eventually(t, "the webhook is asked", func() string { return missing(asked, change(`{"spec": {"message": "hello"}}`)) })

	for name, version := range map[string]string{"the new version": "v1beta1", "the old version": "v1alpha1"} {
		t.Run("a template is created in "+name+" of the API", func(t *testing.T) {
			manifest := strings.ReplaceAll(strings.ReplaceAll(manifest, "v1beta1", version), "name: kept", "name: new")
			wantAnswer(t, asked, kubectl(t, plane, nil, manifest, "create", "--dry-run=server", "-f", "-"))
		})
	}
	for name, result := range map[string]func() controlplane.Result{
		"is labelled":      func() controlplane.Result { return change(`{"metadata": {"labels": {"a": "b"}}}`) },
		"gets a finalizer": func() controlplane.Result { return change(`{"metadata": {"finalizers": ["example.com/a"]}}`) },
		"gets the spec it has": func() controlplane.Result {
			return change(`{"spec": {"virtualMachine": {"spec": {"runStrategy": "Halted"}}}}`)
		},
		"gets a status": func() controlplane.Result {
			return change(`{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`, "--subresource=status")
		},
		"is deleted": func() controlplane.Result {
			return kubectl(t, plane, nil, "", "delete", "vmt", "kept", "--namespace", space, "--dry-run=server")
		},
	} {
		t.Run("a stored template "+name, func(t *testing.T) { wantAnswer(t, "", result()) })
	}
}

// Instances of VirtualMachines and claims, where an approval denies; also from KubeVirt, which no approval evaluates.
func TestWhatTheAPIServerAsksTheManagerAboutInstances(t *testing.T) {
	plane, space, users := withVMs(t, install.Options{})
	harness.Grant(t, plane, users[controller], "", rbacv1.PolicyRule{
		APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachineinstances"}, Verbs: []string{"*"},
	})
	warned, free := namespace(t, plane), namespace(t, plane)
	for name, governed := range map[string]string{space: "true", warned: "warn", free: "false"} {
		mustKubectl(t, plane, "", "label", "namespace", name, "stencil.kubevirt.io/governed="+governed)
	}
	const (
		asked   = `failed calling webhook "virtualmachineinstance.validate.template.kubevirt.io"`
		vm      = `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "u", "controller": true}`
		volume  = `{"name": "root", "dataVolume": {"name": "web-root"}}`
		claimed = `{"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}}`
		image   = `{"name": "image", "containerDisk": {"image": "registry.example/image"}}`
	)
	create := func(space, version, owners, volumes string) controlplane.Result {
		return kubectl(t, plane, users[controller], `{"apiVersion": "kubevirt.io/`+version+`", "kind": "VirtualMachineInstance",
			"metadata": {"name": "web", "ownerReferences": [`+owners+`]}, "spec": {"domain": {"devices": {}}, "volumes": [`+volumes+`]}}`,
			"create", "--namespace", space, "--dry-run=server", "-f", "-")
	}
	eventually(t, "the webhook is asked", func() string { return missing(asked, create(space, "v1", vm, volume)) })
	for name, tc := range map[string]struct {
		space, version, owners, volumes string
		want                            string
	}{
		"a DataVolume":                     {space: space, version: "v1", owners: vm, volumes: image + "," + volume, want: asked},
		"a claim":                          {space: space, version: "v1", owners: vm, volumes: claimed, want: asked},
		"the old version":                  {space: space, version: "v1alpha3", owners: vm, volumes: volume, want: asked},
		"no claim":                         {space: space, version: "v1", owners: vm, volumes: image},
		"no volumes":                       {space: space, version: "v1", owners: vm},
		"no owner":                         {space: space, version: "v1", volumes: volume},
		"another kind of owner":            {space: space, version: "v1", owners: strings.Replace(vm, "VirtualMachine", "VirtualMachineInstanceReplicaSet", 1), volumes: volume},
		"an approval that warns":           {space: warned, version: "v1", owners: vm, volumes: volume},
		"a namespace that nothing governs": {space: free, version: "v1", owners: vm, volumes: volume},
	} {
		t.Run(name, func(t *testing.T) {
			wantAnswer(t, tc.want, create(tc.space, tc.version, tc.owners, tc.volumes))
		})
	}
}
