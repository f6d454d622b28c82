package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

const web = `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: web}
spec:
  message: "${NAME} has ${CORES} cores."
  parameters:
  - {name: NAME, required: true, description: Name of the machine}
  - {name: CORES, type: int, minimum: 1, maximum: 8, value: "2"}
  - {name: PASSWORD, sensitive: true, generate: expression, from: "[a-z]{12}"}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      template:
        spec:
          domain: {cpu: {cores: "${{CORES}}"}, devices: {}}
          volumes: [{name: init, cloudInitNoCloud: {userData: "password: ${PASSWORD}"}}]
`

// namespaceWith makes a namespace with these objects, and a user without permissions.
func namespaceWith(t *testing.T, manifest string) (namespace string, user *controlplane.User) {
	t.Helper()
	plane := shared.Plane(t)
	namespace = harness.Namespace(t, plane, "cli")
	if manifest != "" {
		harness.Must(t, plane, nil, manifest, "create", "-n", namespace, "-f", "-")
	}
	return namespace, harness.User(t, plane, "ada-"+namespace)
}

func grant(t *testing.T, user *controlplane.User, namespace, group, resource string, verbs ...string) {
	t.Helper()
	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	harness.Grant(t, shared.Plane(t), user, namespace, rule)
}

func (r result) want(t *testing.T, code int, output, problems string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	if diff := cmp.Diff(output, r.output); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if !strings.Contains(r.problems, problems) || problems == "" && r.problems != "" {
		t.Errorf("standard error is %q, want %q in it", r.problems, problems)
	}
}

func TestProcessWithTheRightsOfThePerson(t *testing.T) {
	namespace, ada := namespaceWith(t, web)
	// A template that the user may not read is not rendered here.
	run(t, ada, "process", "web", "-n", namespace, "--local", "-p", "NAME=web-1").
		want(t, 3, "", "cannot get resource \"virtualmachinetemplates\"")
	grant(t, ada, namespace, "template.kubevirt.io", "virtualmachinetemplates", "get")
	run(t, ada, "process", namespace+"/web", "--local", "-p", "NAME=web-1", "-o", "name").
		want(t, 0, "virtualmachine.kubevirt.io/web-1\n", "web-1 has 2 cores.\n")
	run(t, ada, "process", "web", "-n", namespace, "--print-params").
		want(t, 0, ""+
			"NAME       REQUIRED   DEFAULT       CONSTRAINT            DESCRIPTION\n"+
			"NAME       yes        <none>        <none>                Name of the machine\n"+
			"CORES      no         2             integer from 1 to 8   \n"+
			"PASSWORD   no         (generated)   <none>                \n", "")
	run(t, ada, "process", "other", "-n", namespace, "--local").
		want(t, 3, "", "template "+namespace+"/other does not exist\n")

	// Objects are created as this user.
	run(t, ada, "create", "web", "-n", namespace, "--local", "-p", "NAME=web-1").
		want(t, 3, "", "cannot create resource \"virtualmachines\"")
	grant(t, ada, namespace, "kubevirt.io", "virtualmachines", "create", "get")
	run(t, ada, "create", "web", "-n", namespace, "--local", "-p", "NAME=web-1", "--dry-run=server").
		want(t, 0, "virtualmachine.kubevirt.io "+namespace+"/web-1 created (server dry run)\n", "web-1 has 2 cores.\n")
	run(t, ada, "create", "-f", write(t, "web.yaml", web), "-n", namespace, "-p", "NAME=web-1", "-p", "CORES=4").
		want(t, 0, "virtualmachine.kubevirt.io "+namespace+"/web-1 created\n", "web-1 has 4 cores.\n")
	run(t, ada, "create", "web", "-n", namespace, "--local", "-p", "NAME=web-1").
		want(t, 3, "", `virtualmachines.kubevirt.io "web-1" already exists`)
	// Standard input is not a terminal, so there is no prompt.
	run(t, ada, "create", "web", "-n", namespace, "--local").
		want(t, 2, "", "parameters[NAME]: Required value")
	// As another user.
	run(t, shared.Plane(t).Admin(), "create", "web", "-n", namespace, "--local", "-p", "NAME=web-2", "--as", "eve").
		want(t, 3, "", `User "eve" cannot get resource`)
}

func TestDiff(t *testing.T) {
	namespace, ada := namespaceWith(t, web)
	grant(t, ada, namespace, "template.kubevirt.io", "virtualmachinetemplates", "get")
	grant(t, ada, namespace, "kubevirt.io", "virtualmachines", "create", "get", "patch")
	run(t, ada, "create", "web", "-n", namespace, "--local", "-p", "NAME=web-1").want(t, 0, "virtualmachine.kubevirt.io "+namespace+"/web-1 created\n", "cores")
	run(t, ada, "diff", "web-1", "-n", namespace).want(t, 2, "", "VirtualMachine "+namespace+"/web-1 names no template: give one (-t)")
	file := write(t, "web.yaml", web)
	run(t, ada, "diff", "web-1", "-n", namespace, "-t", file).
		want(t, 0, "VirtualMachine "+namespace+"/web-1 and template in "+file+": 0 differences\n", "")
	patch := fmt.Sprintf(`{"metadata": {"annotations": {"template.kubevirt.io/template-ref": "%s/web"}}, "spec": {"template": {"spec": {"domain": {"cpu": {"cores": 9}}}}}}`, namespace)
	if result, err := shared.Plane(t).Kubectl(t.Context(), ada, "", "patch", "vm", "web-1", "-n", namespace, "--type=merge", "-p", patch); err != nil || result.Code != 0 {
		t.Fatalf("%v: %s", err, result.Stderr)
	}
	run(t, ada, "diff", "web-1", "-n", namespace).want(t, 1, "VirtualMachine "+namespace+"/web-1 and template "+namespace+`/web: 1 difference
spec.template.spec.domain.cpu.cores
  template ${CORES}, which must be at most 8
  VM       "9"
`, "")
	run(t, ada, "diff", "web-2", "-n", namespace).want(t, 3, "", "there is no VirtualMachine web-2 in namespace "+namespace)
}

func TestApproveCreatesAndExtends(t *testing.T) {
	plane := shared.Plane(t)
	const team = "templateapproval.stencil.kubevirt.io/approve-test "
	approve := func(arguments ...string) result {
		t.Helper()
		return run(t, plane.Admin(), append([]string{"approve", "approve-test"}, arguments...)...)
	}
	approve("--template", "golden/web", "--namespace", "team-x", "--dry-run=server").want(t, 0, team+"created (server dry run)\n", "")
	approve("--template", "golden/web", "--namespace", "team-x", "--allow", "CORES=1,2").want(t, 0, team+"created\n", "")
	approve("--template", "golden/web").want(t, 0, team+"unchanged\n", "")
	approve("--template", "golden/*", "-n", "team-y", "--override", `metadata.labels["example.com/tier"]`, "--enforcement", "Warn").want(t, 0, team+"extended\n", "")
	approve("--override", "status").want(t, 2, "", "the approval would not be valid:\n  spec.overrides[1]: ")

	stored, err := plane.Kubectl(t.Context(), nil, "", "get", "tapp", "approve-test", "-o", "json")
	if err != nil || stored.Code != 0 {
		t.Fatalf("%v: %s", err, stored.Stderr)
	}
	var got struct{ Spec any }
	if err := json.Unmarshal([]byte(stored.Stdout), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"namespaces":  []any{"team-x", "team-y"},
		"templates":   []any{map[string]any{"namespace": "golden", "name": "web"}, map[string]any{"namespace": "golden", "selector": map[string]any{}}},
		"parameters":  []any{map[string]any{"name": "CORES", "allowed": []any{"1", "2"}}},
		"overrides":   []any{`metadata.labels["example.com/tier"]`},
		"enforcement": "Warn",
	}
	if diff := cmp.Diff(any(want), got.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, ada := namespaceWith(t, "")
	run(t, ada, "approve", "mine", "--template", "golden/web", "-n", "team-x").want(t, 3, "", "cannot get resource \"templateapprovals\"")
}

func TestCaptureShowsProgress(t *testing.T) {
	plane := shared.Plane(t)
	namespace, ada := namespaceWith(t, vm2("web-1"))
	run(t, ada, "capture", "web-1", "-n", namespace).want(t, 3, "", "cannot create resource \"virtualmachinetemplaterequests\"")
	grant(t, ada, namespace, "template.kubevirt.io", "virtualmachinetemplaterequests", "create", "get")

	for _, tc := range []struct {
		name           string
		last           string
		wantCode       int
		wantOut, wantE string
	}{
		{
			name:     "ready",
			last:     `{"status": {"templateRef": {"name": "web"}, "conditions": [` + condition("Progressing", "False", "Reconciled") + "," + condition("Ready", "True", "Reconciled") + `]}}`,
			wantCode: 0, wantOut: "virtualmachinetemplate.template.kubevirt.io " + namespace + "/web ready\n", wantE: "Ready True (Reconciled): told\n",
		},
		{
			name:     "failed",
			last:     `{"status": {"conditions": [` + condition("Progressing", "False", "Failed") + "," + condition("Ready", "False", "Failed") + `]}}`,
			wantCode: 1, wantE: " has failed\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			done := make(chan error, 1)
			go func() { done <- carry(t.Context(), plane, namespace, tc.last) }()
			got := run(t, ada, "capture", "web-1", "-n", namespace, "--wait", "--timeout", "60s", "--poll-interval", "100ms")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			got.want(t, tc.wantCode, tc.wantOut, tc.wantE)
			if !strings.Contains(got.problems, "Progressing True (Reconciling): told\n") {
				t.Errorf("no progress: %s", got.problems)
			}
		})
	}
	got := run(t, ada, "capture", "web-1", "-n", namespace, "--wait", "--timeout", "1s", "--poll-interval", "100ms")
	got.want(t, 1, "", " is not finished after 1s; it continues\n")
}

func condition(kind, status, reason string) string {
	return fmt.Sprintf(`{"type": %q, "status": %q, "reason": %q, "message": "told", "lastTransitionTime": "2026-01-01T00:00:00Z"}`, kind, status, reason)
}

// carry simulates the controller: it writes the conditions to the first request that has none.
func carry(ctx context.Context, plane *controlplane.Plane, namespace, last string) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	name := ""
	for name == "" {
		result, err := plane.Kubectl(ctx, nil, "", "get", "vmtr", "-n", namespace, "-o", "json")
		if err != nil {
			return err
		}
		var list v1beta1.VirtualMachineTemplateRequestList
		if err := json.Unmarshal([]byte(result.Stdout), &list); err != nil {
			return fmt.Errorf("%w: %s", err, result.Stderr)
		}
		for _, request := range list.Items {
			if len(request.Status.Conditions) == 0 {
				name = request.Name
			}
		}
		if name == "" {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	for i, status := range []string{`{"status": {"conditions": [` + condition("Progressing", "True", "Reconciling") + `]}}`, last} {
		if i > 0 {
			// The command must have read the first one; it polls ten times a second.
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
		result, err := plane.Kubectl(ctx, nil, "", "patch", "vmtr", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", status)
		if err != nil {
			return err
		}
		if result.Code != 0 {
			return fmt.Errorf("patching the status: %s", result.Stderr)
		}
	}
	return nil
}

func vm2(name string) string {
	return "{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: " + name + "}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}}"
}

func TestConvertFromTheCluster(t *testing.T) {
	plane := shared.Plane(t)
	anything := true
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "templates.template.openshift.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "template.openshift.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Template", ListKind: "TemplateList", Plural: "templates", Singular: "template"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}},
			}},
		},
	}
	if err := plane.InstallCRDs(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	namespace, ada := namespaceWith(t, `
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: rhel, labels: {os: rhel}}
labels: {app: "${NAME}"}
objects: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: "${NAME}"}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}}]
parameters: [{name: NAME, required: true}]
`)
	run(t, ada, "convert", "rhel", "-n", namespace).want(t, 3, "", "cannot get resource \"templates\"")
	run(t, plane.Admin(), "convert", "none", "-n", namespace).want(t, 3, "", "there is no Template none in namespace "+namespace)
	got := run(t, plane.Admin(), "convert", "rhel", "-n", namespace)
	if got.code != 0 || !strings.Contains(got.problems, "1 Template: 1 converted with 0 losses, 0 rejected\n") {
		t.Fatalf("%+v", got)
	}
	// The API server accepts the output, in any namespace.
	if result, err := plane.Kubectl(t.Context(), nil, got.output, "create", "-n", namespace, "-f", "-"); err != nil || result.Code != 0 {
		t.Fatalf("%v: %s\n%s", err, result.Stderr, got.output)
	}
	run(t, plane.Admin(), "process", "rhel", "-n", namespace, "--local", "-p", "NAME=web-1", "-o", "name").want(t, 0, "virtualmachine.kubevirt.io/web-1\n", "")
}
