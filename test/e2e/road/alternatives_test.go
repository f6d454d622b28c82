package road_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/gen"
)

// TestWhatExcludesEachOtherIsReplaced creates and changes VMs that have another alternative than their template, as a user with the role edit.
func TestWhatExcludesEachOtherIsReplaced(t *testing.T) {
	mustKubectl(t, nil, gen.Manifest(gen.Template("alternatives", gen.Declares("NAME", "required: true"), gen.Renders("${NAME}", gen.Spec(`
running: false
template:
  spec:
    readinessProbe: {httpGet: {port: 80}, periodSeconds: 7}
    domain:
      memory: {guest: 64Mi}
      clock: {utc: {}}
      firmware: {bootloader: {efi: {secureBoot: false}}}
      devices:
        interfaces: [{name: default, masquerade: {}, model: virtio}]
        disks: [{name: root, disk: {bus: virtio}, serial: A1}]
    networks: [{name: default, pod: {}}]
    volumes: [{name: root, containerDisk: {image: "registry.example/fedora:42"}}]
`)))), "apply", "--namespace=road-golden", "-f", "-")
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "virtualmachinetemplate", "alternatives", "--namespace=road-golden")
	})
	manifest := func(name, spec string) string {
		return vm(name, "road-golden/alternatives", gen.Spec(spec))
	}
	// field returns a field of the instance, of the first item of a list.
	field := func(vm *unstructured.Unstructured, path string) map[string]any {
		value := at(t, vm, "spec", "template", "spec")
		for key := range strings.SplitSeq(path, ".") {
			if list, is := value.([]any); is {
				value = list[0]
			}
			value = value.(map[string]any)[key]
		}
		if list, is := value.([]any); is {
			value = list[0]
		}
		return value.(map[string]any)
	}

	for name, tc := range map[string]struct {
		spec, path string
		want       map[string]any
	}{
		"bridge":  {`{template: {spec: {domain: {devices: {interfaces: [{name: default, bridge: {}}]}}}}}`, "domain.devices.interfaces", map[string]any{"name": "default", "bridge": map[string]any{}, "model": "virtio"}},
		"sriov":   {`{template: {spec: {domain: {devices: {interfaces: [{name: default, sriov: {}}]}}}}}`, "domain.devices.interfaces", map[string]any{"name": "default", "sriov": map[string]any{}, "model": "virtio"}},
		"multus":  {`{template: {spec: {readinessProbe: {guestAgentPing: {}}, networks: [{name: default, multus: {networkName: lan}}], domain: {devices: {interfaces: [{name: default, bridge: {}}]}}}}}`, "networks", map[string]any{"name": "default", "multus": map[string]any{"networkName": "lan"}}},
		"volume":  {`{template: {spec: {volumes: [{name: root, persistentVolumeClaim: {claimName: x}}]}}}`, "volumes", map[string]any{"name": "root", "persistentVolumeClaim": map[string]any{"claimName": "x"}}},
		"cdrom":   {`{template: {spec: {domain: {devices: {disks: [{name: root, cdrom: {bus: sata}}]}}}}}`, "domain.devices.disks", map[string]any{"name": "root", "cdrom": map[string]any{"bus": "sata"}, "serial": "A1"}},
		"bios":    {`{template: {spec: {domain: {firmware: {bootloader: {bios: {}}}}}}}`, "domain.firmware.bootloader", map[string]any{"bios": map[string]any{}}},
		"probe":   {`{template: {spec: {readinessProbe: {guestAgentPing: {}}}}}`, "readinessProbe", map[string]any{"guestAgentPing": map[string]any{}, "periodSeconds": int64(7)}},
		"clock":   {`{template: {spec: {domain: {clock: {timezone: Europe/Berlin}}}}}`, "domain.clock", map[string]any{"timezone": "Europe/Berlin"}},
		"nothing": {`{}`, "domain.devices.interfaces", map[string]any{"name": "default", "masquerade": map[string]any{}, "model": "virtio"}},
	} {
		t.Run(name, func(t *testing.T) {
			discard(t, name)
			mustKubectl(t, ada, manifest(name, tc.spec), "create", "-f", "-")
			got := field(get(t, name), tc.path)
			delete(got, "dedicatedIOThread")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}

	t.Run("runStrategy", func(t *testing.T) {
		discard(t, "run")
		mustKubectl(t, ada, manifest("run", `{runStrategy: Manual}`), "create", "-f", "-")
		spec := at(t, get(t, "run"), "spec").(map[string]any)
		if spec["runStrategy"] != "Manual" || spec["running"] != nil {
			t.Errorf("runStrategy %v, running %v", spec["runStrategy"], spec["running"])
		}
	})

	t.Run("both by the user", func(t *testing.T) {
		got := kubectl(t, ada, manifest("both", `{template: {spec: {networks: [{name: default, pod: {}, multus: {networkName: lan}}]}}}`), "create", "-f", "-")
		if got.Code == 0 || !strings.Contains(got.Stderr, "should have only one network type") {
			t.Errorf("code %d: %s", got.Code, got.Stderr)
		}
	})

	const devices = "domain.devices.interfaces"
	bindings := func(t *testing.T, name string, want ...string) {
		t.Helper()
		found := field(get(t, name), devices)
		var got []string
		for _, each := range []string{"bridge", "masquerade", "sriov"} {
			if found[each] != nil {
				got = append(got, each)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("bindings (-want +got):\n%s", diff)
		}
	}
	bridge := `{template: {spec: {domain: {devices: {interfaces: [{name: default, bridge: {}}]}}}}}`
	sriov := strings.Replace(bridge, "bridge", "sriov", 1)
	for name, flags := range map[string][]string{"client": nil, "server": {"--server-side"}} {
		t.Run("apply by the "+name, func(t *testing.T) {
			own := "applied-by-" + name
			discard(t, own)
			apply := func(spec string) {
				t.Helper()
				mustKubectl(t, ada, manifest(own, spec), append([]string{"apply", "-f", "-"}, flags...)...)
			}
			apply(`{}`)
			bindings(t, own, "masquerade")
			apply(bridge)
			bindings(t, own, "bridge")
			apply(sriov)
			bindings(t, own, "sriov")
			apply(sriov)
			bindings(t, own, "sriov")
			apply(`{}`)
			bindings(t, own, "masquerade")
		})
	}

	t.Run("patch", func(t *testing.T) {
		discard(t, "patched")
		mustKubectl(t, ada, manifest("patched", `{}`), "create", "-f", "-")
		const at = "/spec/template/spec/domain/devices/interfaces/0/"
		mustKubectl(t, ada, "", "patch", "vm", "patched", "--type=json", "-p", `[{"op":"add","path":"`+at+`bridge","value":{}}]`)
		bindings(t, "patched", "bridge")
		mustKubectl(t, ada, "", "patch", "vm", "patched", "--type=json", "-p", `[{"op":"remove","path":"`+at+`bridge"}]`)
		bindings(t, "patched", "masquerade")
	})
}
