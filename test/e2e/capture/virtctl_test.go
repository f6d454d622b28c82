package capture_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestVirtctlCapturesAMachine requests a template of a VM with a released virtctl.
func TestVirtctlCapturesAMachine(t *testing.T) {
	s := real.on(t)
	shop := s.namespace(t, "shop")
	vm := strings.Replace(source, "      - {name: tools, cloudInitConfigDrive: {userData: SCRIPT}}\n", "", 1)
	vm = strings.Replace(vm, "          - {name: tools, disk: {bus: virtio}}\n", "", 1)
	s.does(t, vm, "create", "-n", shop, "-f", "-")
	may := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	vera := harness.User(t, s.platform.Plane, "vera", gen.Permits(shop,
		may("template.kubevirt.io", "virtualmachinetemplaterequests", "create"), may("template.kubevirt.io", "virtualmachinetemplates", "create"),
		may("kubevirt.io", "virtualmachines", "get"), may("snapshot.kubevirt.io", "virtualmachinesnapshots", "create"), may("cdi.kubevirt.io", "datavolumes", "create"),
	))
	tools, err := controlplane.Tools(t.Context(), "virtctl")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), tools["virtctl"], "template", "create", "--vm-name", "web-1", "--name", "web", "-n", shop)
	command.Env = append(os.Environ(), "KUBECONFIG="+vera.Kubeconfig)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(s.does(t, "", "get", "vmtr", "-n", shop, "-o", "json")), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v %v: %s", list, err, said.String())
	}
	if got := s.ends(t, shop, list.Items[0].Metadata.Name); got["Ready"].Status != "True" {
		t.Fatalf("conditions are %+v", got)
	}
	if text := s.does(t, "", "get", "vmt", "web", "-n", shop, "-o", "json"); !strings.Contains(text, `"name": "${NAME}"`) {
		t.Errorf("the template: %s", text)
	}
}
