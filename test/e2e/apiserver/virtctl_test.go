package apiserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// TestVirtctl runs a released virtctl, which has no support for Stencil.
//
//suite:full
func TestVirtctl(t *testing.T) {
	space := shop(t)
	tools, err := controlplane.Tools(t.Context(), "virtctl")
	if err != nil {
		t.Fatal(err)
	}
	virtctl := func(as *controlplane.User, arguments ...string) (out, problems string, code int) {
		command := exec.CommandContext(t.Context(), tools["virtctl"], append([]string{"template"}, arguments...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+as.Kubeconfig)
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := command.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if testing.Verbose() {
			t.Logf("%s$ virtctl template %s\n%s%s", as.Name, strings.Join(arguments, " "), stdout.String(), stderr.String())
		}
		return stdout.String(), stderr.String(), command.ProcessState.ExitCode()
	}
	t.Run("process", func(t *testing.T) {
		out, problems, code := virtctl(bob, "process", "box", "-n", space, "-p", "NAME=virtctl-1", "-p", "CORES=2", "-o", "json")
		var vm struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Template struct {
					Spec struct {
						Domain struct{ CPU struct{ Cores int } }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &vm); err != nil || code != 0 || vm.Kind != "VirtualMachine" || vm.Metadata.Name != "virtctl-1" || vm.Spec.Template.Spec.Domain.CPU.Cores != 2 {
			t.Errorf("exit code %d: %s%s", code, out, problems)
		}
		if !strings.Contains(problems, "virtctl-1 has password ") {
			t.Errorf("the message is missing: %s", problems)
		}
	})
	t.Run("create, without any right on machines", func(t *testing.T) {
		if out, problems, code := virtctl(ada, "process", "box", "-n", space, "-p", "NAME=virtctl-2", "--create"); code != 0 || !strings.Contains(out+problems, "virtualmachine.kubevirt.io/virtctl-2 created") {
			t.Fatalf("exit code %d: %s%s", code, out, problems)
		}
		if by := mustKubectl(t, "", "get", "vm", "virtctl-2", "--namespace="+space, "-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/created-by}`); by != "ada" {
			t.Errorf("created by %q", by)
		}
	})
	t.Run("refusals come back with their causes", func(t *testing.T) {
		for _, tc := range []struct {
			name, want string
			as         *controlplane.User
			arguments  []string
		}{
			{"a bad value", "parameters[CORES]", bob, []string{"process", "box", "-n", space, "-p", "NAME=virtctl-3", "-p", "CORES=9"}},
			{"a template that is not there", `"none" not found`, ada, []string{"process", "none", "-n", space}},
			{"no right to create", "cannot create resource", bob, []string{"process", "box", "-n", space, "-p", "NAME=virtctl-3", "--create"}},
		} {
			if out, problems, code := virtctl(tc.as, tc.arguments...); code == 0 || !strings.Contains(problems, tc.want) {
				t.Errorf("%s: exit code %d: %s%s", tc.name, code, out, problems)
			}
		}
	})
	t.Run("create makes a request, with the rights that it takes", func(t *testing.T) {
		gus := harness.User(t, stencil.Plane, "gus")
		grant := func(group, resource, verb string) {
			t.Helper()
			rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
			harness.Grant(t, stencil.Plane, gus, space, rule)
		}
		denied := func(want string, arguments ...string) {
			t.Helper()
			arguments = append([]string{"create", "--vm-name", "virtctl-vm", "-n", space}, arguments...)
			if out, problems, code := virtctl(gus, arguments...); code == 0 || !strings.Contains(problems, want) {
				t.Errorf("exit code %d, want %q: %s%s", code, want, out, problems)
			}
		}
		denied(`cannot create resource "virtualmachinetemplaterequests"`)
		grant("template.kubevirt.io", "virtualmachinetemplaterequests", "create")
		denied("User is not allowed to read VirtualMachine " + space + "/virtctl-vm")
		grant("kubevirt.io", "virtualmachines", "get")
		denied("virtualmachinesnapshots.snapshot.kubevirt.io")
		grant("snapshot.kubevirt.io", "virtualmachinesnapshots", "create")
		denied("datavolumes.cdi.kubevirt.io")
		grant("cdi.kubevirt.io", "datavolumes", "create")
		denied("virtualmachinetemplates.template.kubevirt.io")
		grant("template.kubevirt.io", "virtualmachinetemplates", "create")
		other := floor(t)
		denied("User is not allowed to use VirtualMachine "+other+"/virtctl-vm as the source", "--vm-namespace", other)

		harness.Must(t, stencil.Plane, dora, gen.Manifest(gen.VM("virtctl-vm", gen.SmallSpec())), "create", "--namespace="+space, "-f", "-")
		out, problems, code := virtctl(gus, "create", "--vm-name", "virtctl-vm", "-n", space, "--name", "virtctl-template")
		if code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out, problems)
		}
		t.Cleanup(func() {
			mustKubectl(t, "", "delete", "virtualmachinetemplaterequests", "--all", "--namespace="+space, "--wait=false")
		})
		var list v1beta1.VirtualMachineTemplateRequestList
		if err := json.Unmarshal([]byte(mustKubectl(t, "", "get", "vmtr", "--namespace="+space, "-o", "json")), &list); err != nil || len(list.Items) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		want := v1beta1.VirtualMachineTemplateRequestSpec{
			VirtualMachineRef: v1beta1.VirtualMachineReference{Namespace: space, Name: "virtctl-vm"}, TemplateName: "virtctl-template",
		}
		if diff := cmp.Diff(want, list.Items[0].Spec); diff != "" || !strings.HasPrefix(list.Items[0].Name, "virtctl-vm-") || !strings.Contains(out+problems, list.Items[0].Name) {
			t.Errorf("%s: %s%s (-want +got):\n%s", list.Items[0].Name, out, problems, diff)
		}
	})
	t.Run("what process prints is approved", func(t *testing.T) {
		d := newDesk(t, "{}")
		out, problems, code := virtctl(d.user, "process", "box", "-n", space, "-p", "NAME=virtctl-4")
		if code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out, problems)
		}
		if created := kubectl(t, d.user, out, "create", "--namespace="+d.namespace, "-f", "-"); created.Code != 0 {
			t.Fatalf("%s%s", created.Stdout, created.Stderr)
		}
		d.wantInstance(t, "virtctl-4", space+"/box")
	})
	t.Run("what convert makes of OpenShift's Templates is a template", func(t *testing.T) {
		out, problems, code := virtctl(dora, "convert", "--file", stencil.Example("openshift/rhel.yaml"))
		if code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out, problems)
		}
		// virtctl cannot escape ${HOME} for the guest, which is not a parameter: see below for the differences between the two.
		if denied := kubectl(t, nil, out, "create", "--namespace="+space, "-f", "-"); denied.Code == 0 || !strings.Contains(denied.Stderr, "no parameter is called HOME") {
			t.Errorf("%s%s", denied.Stdout, denied.Stderr)
		}
		out = strings.ReplaceAll(out, "${HOME}", "$${HOME}")
		mustKubectl(t, out, "create", "--namespace="+space, "-f", "-")
		t.Cleanup(func() { mustKubectl(t, "", "delete", "vmt", "rhel-server", "--namespace="+space) })

		theirs, problems, code := virtctl(bob, "process", "rhel-server", "-n", space, "-p", "NAME=web-1", "-p", "CLOUD_USER_PASSWORD=abcd")
		if code != 0 {
			t.Fatalf("exit code %d: %s%s", code, theirs, problems)
		}
		converted, err := stencilctl.Command{Binary: binary, Arguments: []string{"convert", "-f", stencil.Example("openshift/rhel.yaml")}}.Run(t.Context())
		if err != nil || converted.Code != 0 {
			t.Fatalf("%+v, %v", converted, err)
		}
		ours, err := stencilctl.Command{Binary: binary, Line: "process -f - -p NAME=web-1 -p CLOUD_USER_PASSWORD=abcd", Stdin: converted.Output}.Run(t.Context())
		if err != nil || ours.Code != 0 {
			t.Fatalf("%+v, %v", ours, err)
		}
		// What stencilctl has converted, which virtctl renders by itself.
		file := filepath.Join(t.TempDir(), "template.yaml")
		if err := os.WriteFile(file, []byte(converted.Output), 0o600); err != nil {
			t.Fatal(err)
		}
		local, problems, code := virtctl(bob, "process", "--file", file, "-p", "NAME=web-1", "-p", "CLOUD_USER_PASSWORD=abcd")
		if code != 0 || !strings.Contains(local, "echo ${HOME} > /tmp/home") {
			t.Fatalf("exit code %d: %s%s", code, local, problems)
		}
		sameMachine(t, ours.Output, theirs)
		sameMachine(t, ours.Output, local)
	})
	t.Run("templates of the deprecated version are read, and rendered there", func(t *testing.T) {
		if out, problems, code := virtctl(dora, "process", "box", "-n", space, "--print-params"); code != 0 || !strings.Contains(out, "name: CORES") {
			t.Errorf("exit code %d: %s%s", code, out, problems)
		}
		if out, problems, code := virtctl(dora, "process", "crate", "-n", space, "--local"); code != 0 || !strings.Contains(out, "generateName: crate-") {
			t.Errorf("exit code %d: %s%s", code, out, problems)
		}
	})
}

// sameMachine compares VirtualMachines that stencilctl and virtctl have rendered.
func sameMachine(t *testing.T, ours, theirs string) {
	t.Helper()
	var want, got map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(ours), &want), yaml.Unmarshal([]byte(theirs), &got)); err != nil {
		t.Fatal(err)
	}
	// virtctl drops the Template's labels, which stencilctl writes to the VM and to its instance.
	for _, labels := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata"}} {
		unstructured.RemoveNestedField(want, labels...)
		unstructured.RemoveNestedField(got, labels...)
	}
	// KubeVirt's types encode these empty fields.
	for _, empty := range [][]string{{"status"}, {"spec", "template", "spec", "domain", "resources"}} {
		if found, _, _ := unstructured.NestedMap(got, empty...); len(found) == 0 {
			unstructured.RemoveNestedField(got, empty...)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-stencilctl +virtctl):\n%s", diff)
	}
}
