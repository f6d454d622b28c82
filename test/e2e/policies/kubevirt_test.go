package policies_test

import (
	"context"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// KubeVirt's own processes work in a governed namespace, and virt-api cannot be used to get around an approval.
func TestKubeVirtInAGovernedNamespace(t *testing.T) {
	plane, err := controlplane.Start(t.Context(), controlplane.Options{KubeVirt: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	release, err := installRelease(context.WithoutCancel(t.Context()), plane)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release.kill(); err != nil {
			t.Error(err)
		}
	})
	if err := install.AwaitPolicies(t.Context(), plane); err != nil {
		t.Fatal(err)
	}
	kubectl := func(stdin string, arguments ...string) controlplane.Result {
		t.Helper()
		result, err := plane.Kubectl(t.Context(), nil, stdin, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	must := func(stdin string, arguments ...string) string {
		t.Helper()
		result := kubectl(stdin, arguments...)
		if result.Code != 0 {
			t.Fatalf("kubectl %s: %s", strings.Join(arguments, " "), result.Stderr)
		}
		return result.Stdout
	}
	field := func(kind, name, namespace, path string) string {
		t.Helper()
		return strings.TrimSpace(kubectl("", "get", kind, name, "--namespace", namespace, "--output=jsonpath={"+path+"}").Stdout)
	}
	web := func(reference any) string {
		spec := machineSpec()
		spec["template"].(object)["spec"].(object)["domain"].(object)["memory"] = object{"guest": "64Mi"}
		metadata := object{"name": "web"}
		if reference != nil {
			metadata["annotations"] = object{templateRef: reference}
		}
		return encode(object{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": spec})
	}
	for _, space := range []string{"free", "vault"} {
		must("", "create", "namespace", space)
	}
	must(approval("vault", object{"namespaces": []any{"vault"}}), "create", "-f", "-")
	eventually(t, func() string {
		return needsTemplate("vault").complaint(kubectl(web(nil), "create", "--dry-run=server", "--namespace", "vault", "-f", "-"))
	})
	must(web("golden/fedora"), "create", "--namespace", "vault", "-f", "-")
	call := func(space, what, body string) controlplane.Result {
		return kubectl(body, "replace", "--raw", "/apis/subresources.kubevirt.io/v1/namespaces/"+space+"/virtualmachines/web/"+what, "-f", "-")
	}

	stopped := func(t *testing.T, space string) {
		eventually(t, func() string {
			if got := field("virtualmachine", "web", space, ".status.printableStatus"); got != "Stopped" {
				return "printableStatus is " + got
			}
			return ""
		})
	}
	t.Run("virt-controller keeps the status", func(t *testing.T) { stopped(t, "vault") })
	volume := encode(object{"name": "data", "disk": object{"disk": object{"bus": "scsi"}}, "volumeSource": object{"persistentVolumeClaim": object{"claimName": "data"}}})
	// With one feature gate, virt-api writes status, upon which virt-controller changes spec; with the other, virt-api changes spec itself.
	for gate, written := range map[string]string{"HotplugVolumes": "unable to patch vm status: ", "DeclarativeHotplugVolumes": "unable to patch vm: "} {
		t.Run("a volume is not plugged in with feature gate "+gate, func(t *testing.T) {
			must("", "patch", "kubevirt", "kubevirt", "--namespace", "kubevirt", "--type=merge", "--patch",
				encode(object{"spec": object{"configuration": object{"developerConfiguration": object{"featureGates": []any{gate}}}}}))
			// virt-api reads its configuration a moment later.
			eventually(t, func() string {
				result := call("vault", "addvolume", volume)
				if result.Code == 0 || !strings.Contains(result.Stderr, written) || !strings.Contains(result.Stderr, unplugged("vault").message) {
					return "not refused: " + result.Stdout + result.Stderr
				}
				return ""
			})
			if got := field("virtualmachine", "web", "vault", ".status.volumeRequests") + field("virtualmachine", "web", "vault", ".spec.template.spec.volumes"); got != "" {
				t.Errorf("there is %s", got)
			}
			must(web(nil), "create", "--namespace", "free", "-f", "-")
			stopped(t, "free")
			if result := call("free", "addvolume", volume); result.Code != 0 {
				t.Errorf("refused where nothing is governed: %s", result.Stderr)
			}
			eventually(t, func() string {
				if got := field("virtualmachine", "web", "free", ".spec.template.spec.volumes[*].name"); got != "data" {
					return "volumes are " + got
				}
				return ""
			})
			must("", "delete", "virtualmachine", "web", "--namespace", "free")
		})
	}
	t.Run("a machine is started, and virt-controller makes its instance", func(t *testing.T) {
		if result := call("vault", "start", "{}"); result.Code != 0 {
			t.Fatal(result.Stderr)
		}
		eventually(t, func() string {
			if got := field("virtualmachineinstance", "web", "vault", ".metadata.name"); got != "web" {
				return "there is no instance: " + field("virtualmachine", "web", "vault", ".status.conditions")
			}
			return ""
		})
		if got := field("virtualmachine", "web", "vault", ".spec.runStrategy"); got != "Always" {
			t.Errorf("runStrategy is %q", got)
		}
	})
}
