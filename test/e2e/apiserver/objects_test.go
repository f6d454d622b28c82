package apiserver_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// TestObjectsOfATemplate uses the template of the documentation as a user with the role edit in the namespace: all ways to create a VirtualMachine
// create the objects. To a user who may not use the template, process returns them.
func TestObjectsOfATemplate(t *testing.T) {
	space := shop(t)
	user := harness.User(t, stencil.Plane, "edith", gen.Role(space, "edit"), gen.UsesTemplates(space))
	mustKubectl(t, "", "apply", "--namespace="+space, "-f", stencil.Example("objects/web.yaml"))
	process := func(arguments string) (stencilctl.Result, error) {
		return stencilctl.Command{Binary: binary, Kubeconfig: user.Kubeconfig, Line: "process " + space + "/web -n " + space + " " + arguments}.Run(t.Context())
	}
	var made stencilctl.Result
	harness.Eventually(t, "the template is processed", func() (err error) {
		if made, err = process("-p NAME=piped"); err != nil || made.Code != 0 {
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
		if ran, err := process("-p NAME=web-1 --create"); err != nil || ran.Code != 0 {
			t.Errorf("process --create: %+v, %v", ran, err)
		}
		const told = "the cluster creates the other objects of the template together with the VirtualMachine (Secret ${NAME}-access, Service ${NAME})"
		if !strings.Contains(made.Problems, told) {
			t.Errorf("process: %+v", made)
		}
		if piped := kubectl(t, user, made.Output, "create", "--namespace="+space, "-f", "-"); piped.Stdout != "virtualmachine.kubevirt.io/piped created\n" {
			t.Errorf("%+v", piped)
		}
		for _, name := range []string{"by-kubectl", "by-create", "web-1", "piped"} {
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

	piper := harness.User(t, stencil.Plane, "piper", gen.Role(space, "stencil-template-process"), gen.Role(harness.Namespace(t, stencil.Plane, "piper"), "edit"))
	made, err := stencilctl.Command{Binary: binary, Kubeconfig: piper.Kubeconfig, Line: "process " + space + "/web -p NAME=web-1"}.Run(t.Context())
	if err != nil || made.Code != 0 {
		t.Fatalf("%+v, %v", made, err)
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
	const told = "because only they have the value of PASSWORD"
	if !strings.Contains(made.Problems, told) {
		t.Errorf("process: %+v", made)
	}
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

// TestACompleteMachineWithObjectsIsApproved creates what process returns of a template with objects where approvals govern, as it is and with changes.
func TestACompleteMachineWithObjectsIsApproved(t *testing.T) {
	space := shop(t)
	mustKubectl(t, "", "apply", "--namespace="+space, "-f", stencil.Example("objects/web.yaml"), "-f", stencil.Example("objects/login.yaml"))
	d := desk{namespace: harness.Namespace(t, stencil.Plane, "shelf")}
	d.user = harness.User(t, stencil.Plane, d.namespace+"-dev", gen.Role(d.namespace, "edit"), gen.Role(space, "stencil-template-process"), gen.UsesTemplates(space))
	mustKubectl(t, gen.Manifest(gen.Approval(d.namespace, gen.Governs(d.namespace), gen.Approves(space+"/web", space+"/login"), gen.AnyValue("NAME"))), "create", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, "", "delete", "templateapproval", d.namespace) })
	mustKubectl(t, "", "wait", "--for=condition=Active", "templateapproval/"+d.namespace, "--timeout=60s")

	secretRef := func(t *testing.T, vm *unstructured.Unstructured, name string) *unstructured.Unstructured {
		t.Helper()
		volumes, _, err := unstructured.NestedSlice(vm.Object, "spec", "template", "spec", "volumes")
		if err != nil || len(volumes) < 2 {
			t.Fatalf("%v in %v", err, vm.Object)
		}
		volumes[1].(map[string]any)["cloudInitNoCloud"] = map[string]any{"secretRef": map[string]any{"name": name}}
		return edit(t, vm, volumes, "spec", "template", "spec", "volumes")
	}
	const own = "kind: Secret\napiVersion: v1\nmetadata: {name: NAME}\nstringData: {userdata: evil}\n"
	for _, tc := range []struct {
		name     string
		template string
		values   string
		vm       func(t *testing.T, vm *unstructured.Unstructured) *unstructured.Unstructured
		secret   string // of the user, that exists before
		want     []string
		wantNot  string
	}{
		{name: "web", template: "web", values: "{NAME: web}"},
		{name: "login", template: "login", values: "{NAME: login}"},
		{
			name: "attack, another Secret", template: "web", values: "{NAME: attack}", secret: "mine", want: []string{"cloudInitNoCloud.secretRef"},
			vm: func(t *testing.T, vm *unstructured.Unstructured) *unstructured.Unstructured {
				return secretRef(t, vm, "mine")
			},
		},
		{
			name: "attack, another Secret in place of the moved user data", template: "login", values: "{NAME: attack}", secret: "mine", want: []string{"cloudInitNoCloud.secretRef"},
			vm: func(t *testing.T, vm *unstructured.Unstructured) *unstructured.Unstructured {
				return secretRef(t, vm, "mine")
			},
		},
		{name: "attack, the user has made its Secret", template: "web", values: "{NAME: attack}", secret: "attack-access", want: []string{"spec.objects[0]", "exists"}},
		{
			name: "attack, a chosen password", template: "web", values: "{NAME: attack}", want: []string{"parameters[PASSWORD]"}, wantNot: "letmein",
			vm: func(t *testing.T, vm *unstructured.Unstructured) *unstructured.Unstructured {
				return edit(t, vm, "letmein-letmein1", "metadata", "annotations", parameterKey+"PASSWORD")
			},
		},
		{name: "attack, a password that was chosen when it was processed", template: "login", values: "{NAME: attack, PASSWORD: letmein}", want: []string{"template.kubevirt.io/template-ref"}, wantNot: "letmein"},
		{
			name: "attack, a port that only the Service shows", template: "web", values: "{NAME: attack, PORT: 9000}", want: []string{"parameters[PORT]"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vm := d.processTemplate(t, tc.template, tc.values)
			if tc.vm != nil {
				vm = tc.vm(t, vm)
			}
			if tc.secret != "" {
				mustKubectl(t, strings.Replace(own, "NAME", tc.secret, 1), "create", "--namespace="+d.namespace, "-f", "-")
				t.Cleanup(func() { mustKubectl(t, "", "delete", "secret", tc.secret, "--namespace="+d.namespace) })
			}
			out := d.create(t, vm)
			for _, want := range tc.want {
				if out.Code == 0 || !strings.Contains(out.Stderr, want) {
					t.Errorf("it lacks %q: %+v", want, out)
				}
			}
			if tc.wantNot != "" && strings.Contains(out.Stderr, tc.wantNot) {
				t.Errorf("it shows %q: %s", tc.wantNot, out.Stderr)
			}
			if tc.want != nil {
				return
			}
			if out.Code != 0 {
				t.Fatal(out.Stderr)
			}
			stored := d.wantInstance(t, vm.GetName(), space+"/"+tc.template)
			secret := map[string]string{"web": "web-access", "login": "login-cloudinit"}[tc.template]
			harness.Eventually(t, "the Secret exists and the VM is released", func() error {
				got := kubectl(t, nil, "", "get", "secret/"+secret, "--namespace="+d.namespace, "-o", "jsonpath={.metadata.ownerReferences[0].uid}")
				held := mustKubectl(t, "", "get", "virtualmachine", vm.GetName(), "--namespace="+d.namespace, "-o", "jsonpath={.metadata.annotations}{.spec.template.metadata.annotations}")
				if got.Stdout != string(stored.GetUID()) || strings.Contains(held, "objects.template.kubevirt.io/") {
					return fmt.Errorf("%+v, annotations %s", got, held)
				}
				return nil
			})
			// The manifest of the creation changes nothing afterwards.
			for _, want := range []string{"configured", "unchanged"} {
				if again := d.create(t, vm, "apply"); again.Code != 0 || !strings.HasSuffix(strings.TrimSpace(again.Stdout), want) {
					t.Errorf("want %s: %+v", want, again)
				}
			}
		})
	}
	t.Run("and conforms", func(t *testing.T) {
		harness.Eventually(t, "the audit counts them", func() error {
			if counts := mustKubectl(t, "", "get", "templateapproval", d.namespace, "-o", "jsonpath={.status.conforming} {.status.violating}"); counts != "2 0" {
				return fmt.Errorf("conforming and violating: %s", counts)
			}
			return nil
		})
	})
}
