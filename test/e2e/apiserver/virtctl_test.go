package apiserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
)

// TestVirtctl is KubeVirt's own command line, as it is released: it knows nothing of Stencil.
func TestVirtctl(t *testing.T) {
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
		return stdout.String(), stderr.String(), command.ProcessState.ExitCode()
	}
	t.Run("process", func(t *testing.T) {
		out, problems, code := virtctl(bob, "process", "box", "-n", shop, "-p", "NAME=virtctl-1", "-p", "CORES=2", "-o", "json")
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
		discard(t, shop, "virtctl-2")
		if out, problems, code := virtctl(ada, "process", "box", "-n", shop, "-p", "NAME=virtctl-2", "--create"); code != 0 || !strings.Contains(out+problems, "virtualmachine.kubevirt.io/virtctl-2 created") {
			t.Fatalf("exit code %d: %s%s", code, out, problems)
		}
		if by := mustKubectl(t, "", "get", "vm", "virtctl-2", "--namespace="+shop, "-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/created-by}`); by != "ada" {
			t.Errorf("created by %q", by)
		}
	})
	t.Run("refusals come back with their causes", func(t *testing.T) {
		for _, tc := range []struct {
			name, want string
			as         *controlplane.User
			arguments  []string
		}{
			{"a bad value", "parameters[CORES]", bob, []string{"process", "box", "-n", shop, "-p", "NAME=virtctl-3", "-p", "CORES=9"}},
			{"a template that is not there", `"none" not found`, ada, []string{"process", "none", "-n", shop}},
			{"no right to create", "cannot create resource", bob, []string{"process", "box", "-n", shop, "-p", "NAME=virtctl-3", "--create"}},
		} {
			if out, problems, code := virtctl(tc.as, tc.arguments...); code == 0 || !strings.Contains(problems, tc.want) {
				t.Errorf("%s: exit code %d: %s%s", tc.name, code, out, problems)
			}
		}
	})
	t.Run("templates of the deprecated version are read, and rendered there", func(t *testing.T) {
		if out, problems, code := virtctl(dora, "process", "box", "-n", shop, "--print-params"); code != 0 || !strings.Contains(out, "name: CORES") {
			t.Errorf("exit code %d: %s%s", code, out, problems)
		}
		if out, problems, code := virtctl(dora, "process", "crate", "-n", shop, "--local"); code != 0 || !strings.Contains(out, "generateName: crate-") {
			t.Errorf("exit code %d: %s%s", code, out, problems)
		}
	})
}
