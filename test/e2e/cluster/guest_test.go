package cluster_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/cluster"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"

	kubevirtv1 "kubevirt.io/api/core/v1"
)

// bootLimit is far above the time in which a guest boots by emulation, about half a minute.
const bootLimit = 3 * time.Minute

// TestAGuestBootsFromATemplate creates a VM from a template as a user with the role edit. The guest runs, logs the user in with the generated password
// at its serial console, and sees the hardware and the user data that are stored.
func TestAGuestBootsFromATemplate(t *testing.T) {
	namespace := namespaces.Of(t)
	create(t, namespace, "web")
	vm := running(t, namespace, "web")
	seen := facts(t, namespace, "web")
	console := openConsole(t, ada, namespace, "web")
	password, err := kube.GeneratedPassword(t.Context(), ada, namespace, "web")
	if err != nil {
		t.Fatal(err)
	}
	if err := console.LogIn(t.Context(), "ada", password, bootLimit); err != nil {
		t.Fatal(err)
	}
	t.Logf("the serial console:\n%s", console.Text())

	want := map[string]string{
		"hostname": "web",
		"uuid":     string(vm.Spec.Template.Spec.Domain.Firmware.UUID),
		"machine":  "pc-q35-7.2",
	}
	for key, value := range want {
		if !slices.Equal(seen[key], []string{value}) {
			t.Errorf("the guest sees %s %q, want %q", key, seen[key], value)
		}
	}
	if mac := vm.Spec.Template.Spec.Domain.Devices.Interfaces[0].MacAddress; mac != "" && !slices.Contains(seen["mac"], mac) {
		t.Errorf("the guest sees the MAC addresses %q, want %q", seen["mac"], mac)
	}
}

// create creates a VM from the template as ada.
func create(t *testing.T, namespace, name string) {
	t.Helper()
	manifest := gen.Manifest(gen.VM(name, gen.FromTemplate("golden/small")))
	makes(t, ada, namespace, manifest)
}

// running returns a VM when its guest runs. KubeVirt reports it as ready when the probes of all containers of its pod pass as well, which a busy host
// delays.
func running(t *testing.T, namespace, name string) *kubevirtv1.VirtualMachine {
	t.Helper()
	vm := &kubevirtv1.VirtualMachine{}
	harness.Within(t, name+" runs", bootLimit, func() error {
		result := harness.Must(t, kube.Plane, nil, "", "get", "virtualmachine", name, "--namespace="+namespace, "--output=json")
		if err := json.Unmarshal([]byte(result.Stdout), vm); err != nil {
			return err
		}
		if vm.Status.PrintableStatus != kubevirtv1.VirtualMachineStatusRunning {
			return fmt.Errorf("its status is %s: %v", vm.Status.PrintableStatus, vm.Status.Conditions)
		}
		return nil
	})
	return vm
}

func openConsole(t *testing.T, user *controlplane.User, namespace, name string) *cluster.Console {
	t.Helper()
	console, err := kube.Console(t.Context(), user, namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = console.Close() })
	return console
}
