package apiserver_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// TestObjectsOfATemplate uses the template of the documentation as a user with the role edit in the namespace: all ways to create a VirtualMachine
// create the objects, and process returns them.
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

	t.Run("they are created together with the VirtualMachine", func(t *testing.T) {
		explained := request{as: user, path: subresource(t, "v1beta1", "web", "process"), body: "{parameters: {NAME: web-0}, explain: true}"}.do(t)
		if explained.code != http.StatusOK || strings.Contains(explained.body, `"decision":"Deny"`) {
			t.Errorf("%d %s", explained.code, explained.body)
		}
		manifest := func(name string) string {
			return gen.Manifest(gen.VM(name, gen.InNamespace(space), gen.Annotation("template.kubevirt.io/template-ref", "web")))
		}
		mustKubectl(t, manifest("by-kubectl"), "create", "--as="+user.Name, "-f", "-")
		if got := (request{as: user, path: subresource(t, "v1beta1", "web", "create"), body: "parameters: {NAME: by-create}"}).do(t); got.code != http.StatusOK {
			t.Errorf("create: %d %s", got.code, got.body)
		}
		if ran, err := process("--create"); err != nil || ran.Code != 0 {
			t.Errorf("process --create: %+v, %v", ran, err)
		}
		for _, name := range []string{"by-kubectl", "by-create", "web-1"} {
			discard(t, space, name)
			harness.Eventually(t, "the objects of VM "+name+" exist", func() error {
				got := kubectl(t, nil, "", "get", "secret/"+name+"-access", "service/"+name, "--namespace="+space, "-o", "name")
				if got.Code != 0 {
					return fmt.Errorf("%+v", got)
				}
				return nil
			})
		}
		mustKubectl(t, "", "delete", "virtualmachine/web-1", "secret/web-1-access", "service/web-1", "--namespace="+space)
	})
	t.Run("but not from a file", func(t *testing.T) {
		ran, err := stencilctl.Command{Binary: binary, Kubeconfig: user.Kubeconfig, Line: "process " + space + "/web --local -p NAME=web-2 --create"}.Run(t.Context())
		want := fmt.Sprintf(`template %s/web has other objects, which are not created together with the VirtualMachine here (Secret ${NAME}-access, Service ${NAME}); use "stencilctl process %[1]s/web --local … | kubectl create -f -"`, space)
		if err != nil || ran.Code == 0 || !strings.Contains(ran.Problems, want) {
			t.Errorf("%+v, %v", ran, err)
		}
	})

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
	if strings.Contains(vm, string(password)) {
		t.Errorf("the VirtualMachine shows the password: %s", vm)
	}
	script := mustKubectl(t, "", "get", "secret", "web-1-access", "--namespace="+space, "-o", "go-template={{.data.userdata | base64decode}}")
	if !strings.Contains(script, `web, "`+string(password)+`"]`) {
		t.Errorf("cloud-init has another password than the Secret: %s", script)
	}
	selected := mustKubectl(t, "", "get", "virtualmachines,services,secrets", "--namespace="+space, "-l", "app.kubernetes.io/instance=web-1", "-o", "name")
	if want := "virtualmachine.kubevirt.io/web-1\nservice/web-1\nsecret/web-1-access\n"; selected != want {
		t.Errorf("labelled are %q, want %q", selected, want)
	}
}

// TestProcessMovesUserDataIntoASecret uses the template of the documentation whose user data become a Secret, by process and by create.
func TestProcessMovesUserDataIntoASecret(t *testing.T) {
	space := shop(t)
	user := harness.User(t, stencil.Plane, "secretive", gen.Role(space, "edit"), gen.UsesTemplates(space))
	mustKubectl(t, "", "apply", "--namespace="+space, "-f", stencil.Example("objects/login.yaml"))
	var made stencilctl.Result
	harness.Eventually(t, "the template is processed", func() (err error) {
		made, err = stencilctl.Command{Binary: binary, Kubeconfig: user.Kubeconfig, Line: "process " + space + "/login -p NAME=login-1 -p PASSWORD=correct-horse"}.Run(t.Context())
		if err != nil || made.Code != 0 {
			return fmt.Errorf("%+v: %w", made, err)
		}
		return nil
	})
	created := kubectl(t, user, made.Output, "create", "--namespace="+space, "-f", "-")
	if want := "virtualmachine.kubevirt.io/login-1 created\nsecret/login-1-cloudinit created\n"; created.Stdout != want {
		t.Fatalf("%+v", created)
	}
	discard(t, space, "login-1")
	if got := (request{as: user, path: subresource(t, "v1beta1", "login", "create"), body: "parameters: {NAME: login-2, PASSWORD: correct-horse}"}).do(t); got.code != http.StatusOK || strings.Contains(got.body, "correct-horse") {
		t.Errorf("create: %d %s", got.code, got.body)
	}
	discard(t, space, "login-2")
	for _, name := range []string{"login-1", "login-2"} {
		harness.Eventually(t, "the Secret of VM "+name+" exists", func() error {
			got := kubectl(t, nil, "", "get", "secret/"+name+"-cloudinit", "--namespace="+space, "-o", "go-template={{.data.userdata | base64decode}}")
			if !strings.Contains(got.Stdout, `password: "correct-horse"`) {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})
		if vm := mustKubectl(t, "", "get", "virtualmachine", name, "--namespace="+space, "-o", "yaml"); strings.Contains(vm, "correct-horse") || !strings.Contains(vm, "name: "+name+"-cloudinit") {
			t.Errorf("the user data of the VirtualMachine are not in its Secret: %s", vm)
		}
	}
}
