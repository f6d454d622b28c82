package chart

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// Nobody answers the webhooks here, so that a request passes only when the API server does not call them.
func TestWhatTheAPIServerAsksTheManagerFor(t *testing.T) {
	plane, space, users := withMachines(t, install.Options{}, "owner")
	user, exempt := users["owner"], users[controller]

	const asked = `failed calling webhook "render.template.kubevirt.io"`
	const body = `"spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}}`
	cases := map[string]struct {
		as *controlplane.User // the owner when nil
		// create is a VirtualMachine in JSON; otherwise change is a kubectl command about an existing one.
		create string
		change []string
		want   string // asked, or nothing
	}{
		"a machine without annotations is created": {
			create: `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a"}, ` + body + `}`,
		},
		"a machine with null for annotations and labels is created": {
			create: `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a", "annotations": null, "labels": null}, ` + body + `}`,
		},
		"a machine with other annotations is created": {
			create: `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a", "annotations": {"x": "y"}}, ` + body + `}`,
		},
		"a machine with a key that only looks like the reference is created": {
			create: `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a", "annotations": {"template.kubevirt.io/Template-Ref": "x"}}, ` + body + `}`,
		},
		"a machine of the old version of the API is created": {
			create: `{"apiVersion": "kubevirt.io/v1alpha3", "kind": "VirtualMachine", "metadata": {"name": "a"}, ` + body + `}`,
		},
		"a machine with a reference is created": {
			create: `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a", "annotations": {"template.kubevirt.io/template-ref": "x"}}, ` + body + `}`,
			want:   asked,
		},
		"a machine with a reference and nothing else is created": {
			create: `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"generateName": "a", "annotations": {"template.kubevirt.io/template-ref": "x"}}}`,
			want:   asked,
		},
		"a machine with an empty reference is created": {
			create: `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a", "annotations": {"template.kubevirt.io/template-ref": ""}}, ` + body + `}`,
			want:   asked,
		},
		"a machine of the old version of the API with a reference is created": {
			create: `{"apiVersion": "kubevirt.io/v1alpha3", "kind": "VirtualMachine", "metadata": {"name": "a", "annotations": {"template.kubevirt.io/template-ref": "x"}}, ` + body + `}`,
			want:   asked,
		},
		"KubeVirt creates a machine with a reference": {
			as:     exempt,
			create: `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a", "annotations": {"template.kubevirt.io/template-ref": "x"}}, ` + body + `}`,
			want:   asked,
		},

		"a machine of no template is labelled":   {change: []string{"label", "vm", "plain", "a=b"}},
		"a machine of no template is annotated":  {change: []string{"annotate", "vm", "plain", "a=b"}},
		"a machine of no template gets a spec":   {change: []string{"patch", "vm", "plain", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`}},
		"a machine of no template gets a status": {change: []string{"patch", "vm", "plain", "--subresource=status", "--type=merge", "--patch", `{"status": {"created": true}}`}},
		"a machine of no template gets a reference": {
			change: []string{"annotate", "vm", "plain", "template.kubevirt.io/template-ref=x"}, want: asked,
		},

		"a rendered machine is labelled":       {change: []string{"label", "vm", "rendered", "a=b"}, want: asked},
		"a rendered machine is annotated":      {change: []string{"annotate", "vm", "rendered", "a=b"}, want: asked},
		"a rendered machine loses its labels":  {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"metadata": {"labels": null}}`}, want: asked},
		"a rendered machine loses everything":  {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"metadata": {"annotations": null}}`}, want: asked},
		"a rendered machine gets another spec": {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`}, want: asked},
		"a rendered machine loses its spec":    {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": null}`}, want: asked},
		"a rendered machine gets another spec in the old version of the API": {
			change: []string{"patch", "virtualmachines.v1alpha3.kubevirt.io", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`}, want: asked,
		},
		"a rendered machine gets what it has":    {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": "Halted"}}`}},
		"a rendered machine gets a finalizer":    {change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"metadata": {"finalizers": ["example.com/a"]}}`}},
		"a rendered machine gets a status":       {change: []string{"patch", "vm", "rendered", "--subresource=status", "--type=merge", "--patch", `{"status": {"created": true}}`}},
		"a rendered machine is deleted":          {change: []string{"delete", "vm", "rendered"}},
		"KubeVirt labels a rendered machine":     {as: exempt, change: []string{"label", "vm", "rendered", "a=b"}},
		"KubeVirt changes a rendered machine":    {as: exempt, change: []string{"patch", "vm", "rendered", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`}},
		"KubeVirt puts a finalizer on a machine": {as: exempt, change: []string{"patch", "vm", "plain", "--type=merge", "--patch", `{"metadata": {"finalizers": ["example.com/a"]}}`}},
	}
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
			switch {
			case tc.want == "" && result.Code != 0:
				t.Errorf("refused: %s", result.Stderr)
			case tc.want != "" && (result.Code == 0 || !strings.Contains(result.Stderr, tc.want)):
				t.Errorf("not refused with %q: %s", tc.want, result.Stderr)
			}
		})
	}
}

// Templates: only a new spec is judged, and not by way of status.
func TestWhatTheAPIServerAsksTheManagerAboutTemplates(t *testing.T) {
	plane := shared.Plane(t)
	// Stored while there is a definition, and no webhook yet.
	definitions := install.Options{}
	if err := install.Chart(t.Context(), plane, definitions); err != nil {
		t.Fatal(err)
	}
	if err := install.Uninstall(t.Context(), plane, definitions); err != nil {
		t.Fatal(err)
	}
	space := namespace(t, plane)
	manifest := strings.ReplaceAll(template, "namespace: default", "namespace: "+space)
	eventually(t, func() string { return kubectl(t, plane, nil, manifest, "apply", "-f", "-").Stderr })
	installed(t, install.Options{ManagerURL: deadURL})

	const asked = `failed calling webhook "virtualmachinetemplate.validate.template.kubevirt.io"`
	change := func(content string, more ...string) controlplane.Result {
		arguments := append([]string{"patch", "vmt", "kept", "--namespace", space, "--dry-run=server", "--type=merge", "--patch", content}, more...)
		return kubectl(t, plane, nil, "", arguments...)
	}
	eventually(t, func() string { return missing(asked, change(`{"spec": {"message": "hello"}}`)) })

	for name, version := range map[string]string{"the new version": "v1beta1", "the old version": "v1alpha1"} {
		t.Run("a template is created in "+name+" of the API", func(t *testing.T) {
			manifest := strings.ReplaceAll(strings.ReplaceAll(manifest, "v1beta1", version), "name: kept", "name: new")
			if complaint := missing(asked, kubectl(t, plane, nil, manifest, "create", "--dry-run=server", "-f", "-")); complaint != "" {
				t.Error(complaint)
			}
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
		t.Run("a stored template "+name, func(t *testing.T) {
			if result := result(); result.Code != 0 {
				t.Errorf("refused: %s", result.Stderr)
			}
		})
	}
}
