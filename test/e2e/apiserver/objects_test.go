package apiserver_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// TestObjectsOfATemplate uses the template of the documentation as a user with the role edit in the namespace: process and kubectl make all objects,
// and no other way makes any.
func TestObjectsOfATemplate(t *testing.T) {
	space := shop(t)
	user := harness.User(t, stencil.Plane, "edith", gen.Role(space, "edit"), gen.UsesTemplates(space))
	mustKubectl(t, "", "apply", "--namespace="+space, "-f", stencil.Example("objects/web.yaml"))
	process := func(arguments string) (stencilctl.Result, error) {
		return stencilctl.Command{Binary: binary, Kubeconfig: user.Kubeconfig, Line: "process " + space + "/web -p NAME=web-1 " + arguments}.Run(t.Context())
	}
	var made stencilctl.Result
	harness.Eventually(t, "the template is processed", func() (err error) {
		if made, err = process(""); err != nil || made.Code != 0 {
			return fmt.Errorf("%+v: %w", made, err)
		}
		return nil
	})

	denial := fmt.Sprintf(`template %s/web has other objects, which are not created together with a VirtualMachine yet (Secret ${NAME}-access, Service ${NAME}); use "stencilctl process %[1]s/web … | kubectl create -f -"`, space)
	manifest := gen.Manifest(gen.VM("web-1", gen.InNamespace(space), gen.Annotation("template.kubevirt.io/template-ref", "web")))
	for _, dryRun := range []string{"none", "server"} {
		if out := kubectl(t, user, manifest, "create", "--dry-run="+dryRun, "-f", "-"); out.Code == 0 || !strings.Contains(out.Stderr, denial) {
			t.Errorf("a VirtualMachine with a reference, dry run %s: %+v", dryRun, out)
		}
	}
	if got := (request{as: user, path: subresource(t, "v1beta1", "web", "create"), body: "parameters: {NAME: web-1}"}).do(t); got.code != http.StatusUnprocessableEntity || !strings.Contains(got.body, "has other objects") {
		t.Errorf("create: %d %s", got.code, got.body)
	}
	explained := request{as: user, path: subresource(t, "v1beta1", "web", "process"), body: "{parameters: {NAME: web-1}, explain: true}"}.do(t)
	var answer struct{ Decisions []v1beta1.Decision }
	if err := json.Unmarshal([]byte(explained.body), &answer); err != nil {
		t.Fatalf("%d %s", explained.code, explained.body)
	}
	if len(answer.Decisions) != 1 || answer.Decisions[0].Decision != v1beta1.EffectDeny || !strings.Contains(answer.Decisions[0].Message, denial) {
		t.Errorf("decisions: %+v", answer.Decisions)
	}
	if ran, err := process("--create"); err != nil || ran.Code == 0 || !strings.Contains(ran.Problems, "has other objects") {
		t.Errorf("process --create: %+v, %v", ran, err)
	}
	if out := mustKubectl(t, "", "get", "virtualmachines,services,secrets", "--namespace="+space, "-o", "name"); strings.Contains(out, "web-1") {
		t.Fatalf("something was made: %s", out)
	}

	created := kubectl(t, user, made.Output, "create", "--namespace="+space, "-f", "-")
	if want := "virtualmachine.kubevirt.io/web-1 created\nsecret/web-1-access created\nservice/web-1 created\n"; created.Stdout != want {
		t.Fatalf("%+v", created)
	}
	discard(t, space, "web-1")
	encoded := mustKubectl(t, "", "get", "secret", "web-1-access", "--namespace="+space, "-o", "jsonpath={.data.password}")
	password, err := base64.StdEncoding.DecodeString(encoded)
	const length = 16
	if err != nil || len(password) != length {
		t.Fatalf("the password is %q: %v", encoded, err)
	}
	vm := mustKubectl(t, "", "get", "virtualmachine", "web-1", "--namespace="+space, "-o", "yaml")
	if !strings.Contains(vm, string(password)) {
		t.Errorf("the VirtualMachine has another password than the Secret: %s", vm)
	}
	selected := mustKubectl(t, "", "get", "virtualmachines,services,secrets", "--namespace="+space, "-l", "app.kubernetes.io/instance=web-1", "-o", "name")
	if want := "virtualmachine.kubevirt.io/web-1\nservice/web-1\nsecret/web-1-access\n"; selected != want {
		t.Errorf("labelled are %q, want %q", selected, want)
	}
}
