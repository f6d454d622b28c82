package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// vmManifest returns the manifest of a VirtualMachine with this spec.
func vmManifest(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": %q}, "spec": %s}`, name, spec)
}

const haltedSpec = `{"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "1024Mi"}}}}}`

func TestVirtAPIJudgesVirtualMachines(t *testing.T) {
	plane := shared.Plane(t)
	own := namespace(t, plane)
	for name, tc := range map[string]struct {
		manifest string
		want     []string
	}{
		"a disk without a volume is refused in virt-api's words": {
			manifest: vmManifest("diskless", `{"runStrategy": "Halted", "template": {"spec": {"domain": {
				"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}, "memory": {"guest": "1Gi"}}}}}`),
			want: []string{"spec.template.spec.domain.devices.disks[0].name", "domain.devices.disks[0].Name 'root' not found"},
		},
		"a machine that says when it runs twice is refused": {
			manifest: vmManifest("twice", `{"runStrategy": "Halted", "running": true, "template": {"spec": {"domain": {
				"devices": {}, "memory": {"guest": "1Gi"}}}}}`),
			want: []string{"spec.running", "Running and RunStrategy are mutually exclusive"},
		},
		"a wrong type is refused by the schema": {
			manifest: vmManifest("mistyped", `{"runStrategy": "Halted", "template": {"spec": {"domain": {
				"cpu": {"cores": "two"}, "devices": {}, "memory": {"guest": "1Gi"}}}}}`),
			want: []string{"spec.template.spec.domain.cpu.cores", "must be of type integer"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := kubectl(t, plane, nil, tc.manifest, "create", "-n", own, "-f", "-")
			if got.Code == 0 {
				t.Fatalf("created: %s", got.Stdout)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Stderr, want) {
					t.Errorf("want %q in: %s", want, got.Stderr)
				}
			}
		})
	}
}

func TestVirtControllerReportsAVirtualMachineStopped(t *testing.T) {
	plane := shared.Plane(t)
	own := namespace(t, plane)
	created := kubectl(t, plane, nil, vmManifest("web", haltedSpec), "create", "-n", own, "-f", "-", "-o", "json")
	if created.Code != 0 {
		t.Fatal(created.Stderr)
	}
	var stored struct {
		Spec struct {
			Template struct {
				Spec struct {
					Domain struct {
						Machine  struct{ Type string }
						Firmware struct{ UUID string }
						Memory   struct{ Guest string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(created.Stdout), &stored); err != nil {
		t.Fatal(err)
	}
	domain := stored.Spec.Template.Spec.Domain
	if domain.Machine.Type == "" || domain.Firmware.UUID == "" || domain.Memory.Guest != "1Gi" {
		t.Errorf("virt-api defaults machine type and firmware and rewrites quantities; got %+v", domain)
	}
	eventually(t, "the machine is reported as stopped", func() error {
		got := kubectl(t, plane, nil, "", "get", "vm", "web", "-n", own, "--no-headers")
		if !strings.Contains(got.Stdout, "Stopped") {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
}

func TestTheCatalogueAndTheAggregatedAPIExpandAMachine(t *testing.T) {
	plane := shared.Plane(t)
	own := namespace(t, plane)
	user, err := plane.User("expander")
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Bind(t.Context(), user, own, "edit"); err != nil {
		t.Fatal(err)
	}
	spec := `{"runStrategy": "Halted", "instancetype": {"name": "u1.medium"}, "preference": {"name": "fedora"},
		"template": {"spec": {"domain": {"devices": {}}}}}`
	created := kubectl(t, plane, user, vmManifest("typed", spec), "create", "-n", own, "-f", "-")
	if created.Code != 0 {
		t.Fatal(created.Stderr)
	}
	path := "/apis/subresources.kubevirt.io/v1/namespaces/" + own + "/virtualmachines/typed/expand-spec"
	expanded := kubectl(t, plane, user, "", "get", "--raw", path)
	if expanded.Code != 0 {
		t.Fatal(expanded.Stderr)
	}
	if !strings.Contains(expanded.Stdout, `"guest": "4Gi"`) {
		t.Errorf("u1.medium has 4 GiB; got %s", expanded.Stdout)
	}
	stranger, err := plane.User("stranger")
	if err != nil {
		t.Fatal(err)
	}
	if got := kubectl(t, plane, stranger, "", "get", "--raw", path); got.Code == 0 || !strings.Contains(got.Stderr, "Forbidden") {
		t.Errorf("want a refusal of a stranger, got %s%s", got.Stdout, got.Stderr)
	}
}
