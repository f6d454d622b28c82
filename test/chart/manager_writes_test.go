package chart

import (
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// A client with the manager's token, while no manager runs: RBAC permits these requests, admission policies deny them.
func TestTheManagersTokenWritesNothingElse(t *testing.T) {
	options := install.Options{ManagerURL: deadURL}
	plane := shared.Plane(t)
	space := namespace(t, plane)
	installed(t, options)
	if err := install.AwaitPolicies(t.Context(), plane); err != nil {
		t.Fatal(err)
	}
	manager, err := options.ManagerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	mustKubectl(t, plane, "", "label", "namespace", space, "team=a", "--overwrite")
	as := func(stdin string, arguments ...string) controlplane.Result {
		t.Helper()
		return kubectl(t, plane, manager, stdin, arguments...)
	}
	patch := func(kind, name, change string) []string {
		return []string{"patch", kind, name, "--namespace", space, "--dry-run=server", "--type=merge", "--patch", change}
	}
	jsonPatch := func(kind, name, change string) []string {
		return []string{"patch", kind, name, "--dry-run=server", "--type=json", "--patch", change}
	}
	const (
		owned = `"labels": {"template.kubevirt.io/RequestUID": "u-1"},
			"ownerReferences": [{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest", "name": "r", "uid": "u-1"}]`
		namespaces = "ValidatingAdmissionPolicy 'stencil-manager-namespaces'"
		captures   = "ValidatingAdmissionPolicy 'stencil-manager-captures'"
		webhooks   = "ValidatingAdmissionPolicy 'stencil-manager-webhooks'"
		render     = "a-stencil-render"
	)
	created := func(metadata string) string {
		return `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": {"name": "t", ` + metadata + `},
			"spec": {"virtualMachine": {"metadata": {"name": "a"}, "spec": {"template": {"spec": {"domain": {"devices": {}}}}}}}}`
	}
	create := []string{"create", "--namespace", space, "--dry-run=server", "--validate=false", "-f", "-"}
	for name, tc := range map[string]struct {
		stdin     string
		arguments []string
		want      string
	}{
		"it labels namespaces with its label":            {arguments: patch("namespace", space, `{"metadata": {"labels": {"stencil.kubevirt.io/governed": "false"}, "annotations": {"stencil.kubevirt.io/approvals": null}}}`)},
		"not with one of Pod Security":                   {arguments: patch("namespace", space, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}`), want: namespaces},
		"nor does it change others' labels":              {arguments: patch("namespace", space, `{"metadata": {"labels": {"team": null}}}`), want: namespaces},
		"nor annotations":                                {arguments: patch("namespace", space, `{"metadata": {"annotations": {"scheduler.alpha.kubernetes.io/node-selector": "a=b"}}}`), want: namespaces},
		"nor finalizers":                                 {arguments: patch("namespace", space, `{"metadata": {"finalizers": ["example.com/a"]}}`), want: namespaces},
		"nor of kube-system":                             {arguments: patch("namespace", "kube-system", `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}`), want: namespaces},
		"it creates no template of its own":              {stdin: created(`"labels": {"tier": "gold"}`), arguments: create, want: captures},
		"it creates a template for a request":            {stdin: created(owned), arguments: create, want: `failed calling webhook "virtualmachinetemplate.validate.template.kubevirt.io"`},
		"it writes a caBundle":                           {arguments: jsonPatch("mutatingwebhookconfiguration", render, `[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "`+bundle+`"}]`)},
		"not another address":                            {arguments: jsonPatch("mutatingwebhookconfiguration", render, `[{"op": "replace", "path": "/webhooks/0/clientConfig", "value": {"url": "https://evil.example.com/"}}]`), want: webhooks},
		"nor another failurePolicy":                      {arguments: jsonPatch("mutatingwebhookconfiguration", render, `[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]`), want: webhooks},
		"nor rules for Secrets":                          {arguments: jsonPatch("mutatingwebhookconfiguration", render, `[{"op": "add", "path": "/webhooks/0/rules/-", "value": {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["CREATE"]}}]`), want: webhooks},
		"nor a selector":                                 {arguments: jsonPatch("validatingwebhookconfiguration", "stencil-validate", `[{"op": "replace", "path": "/webhooks/0/objectSelector", "value": {"matchLabels": {"never": "true"}}}]`), want: webhooks},
		"nor no conditions":                              {arguments: jsonPatch("mutatingwebhookconfiguration", render, `[{"op": "remove", "path": "/webhooks/0/matchConditions"}]`), want: webhooks},
		"nor no webhooks":                                {arguments: jsonPatch("mutatingwebhookconfiguration", render, `[{"op": "remove", "path": "/webhooks"}]`), want: webhooks},
		"nor webhooks for pods beside those of policies": {arguments: jsonPatch("validatingwebhookconfiguration", "stencil-policies", `[{"op": "add", "path": "/webhooks", "value": [{"name": "pods.example.com", "clientConfig": {"url": "`+deadURL+`/validate-policies"}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}]}]`), want: webhooks},
		"it writes webhooks of policies":                 {arguments: jsonPatch("validatingwebhookconfiguration", "stencil-policies", `[{"op": "add", "path": "/webhooks", "value": [{"name": "vms.example.com", "clientConfig": {"url": "`+deadURL+`/validate-policies"}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [{"apiGroups": ["kubevirt.io"], "apiVersions": ["v1"], "resources": ["virtualmachines"], "operations": ["CREATE"]}]}]}]`)},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "the answer is as wanted", func() string { return differs(tc.want, as(tc.stdin, tc.arguments...)) })
		})
	}

	// A template that was stored before the webhooks existed.
	mustKubectl(t, plane, "", "delete", "validatingwebhookconfiguration", "stencil-validate")
	eventually(t, "a template is stored", func() string {
		return kubectl(t, plane, nil, created(`"labels": {"tier": "silver"}`), "apply", "--namespace", space, "-f", "-").Stderr
	})
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"it owns a template":     {arguments: patch("vmt", "t", `{"metadata": {"finalizers": ["example.com/a"], "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}]}}`)},
		"it changes no template": {arguments: patch("vmt", "t", `{"spec": {"virtualMachine": {"spec": {"running": true}}}}`), want: captures},
		"nor its labels":         {arguments: patch("vmt", "t", `{"metadata": {"labels": {"tier": "gold"}}}`), want: captures},
		"it deletes none":        {arguments: []string{"delete", "vmt", "t", "--namespace", space, "--dry-run=server"}, want: captures},
	} {
		t.Run(name, func(t *testing.T) { wantAnswer(t, tc.want, as("", tc.arguments...)) })
	}
}

// bundle is a caBundle, in base64 as JSON has it.
const bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJkekNDQVIyZ0F3SUJBZ0lCQURBS0JnZ3Foa2pPUFFRREFqQVBNUTB3Q3dZRFZRUURFd1JoCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"
