package policies_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// KubeVirt's own processes work in a governed namespace, and users cannot bypass an approval through virt-api.
func TestKubeVirtInAGovernedNamespace(t *testing.T) {
	// Its plane starts while the other tests wait for theirs.
	t.Parallel()
	plane := controlplane.StartFor(t, controlplane.Options{KubeVirt: true})
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
	if err := install.AwaitExempt(t.Context(), plane, controlplane.VirtController); err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, plane.AdminConfig())
	in := func(t *testing.T, space string) requests { return requests{t: t, client: client, namespace: space} }
	web := func(reference any) string {
		spec := vmSpec()
		spec["template"].(object)["spec"].(object)["domain"].(object)["memory"] = object{"guest": "64Mi"}
		metadata := object{"name": "web"}
		if reference != nil {
			metadata["annotations"] = object{templateRef: reference}
		}
		return encode(object{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": spec})
	}
	for _, space := range []string{"free", "vault"} {
		mustPass(t, in(t, "").create(encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": space}})))
	}
	mustPass(t, in(t, "").create(approval("vault", object{"namespaces": []any{"vault"}})))
	eventually(t, "the approval is enforced", func() string {
		return needsTemplate("vault").complaint(in(t, "vault").dry().create(web(nil)))
	})
	mustPass(t, in(t, "vault").create(web("golden/fedora")))
	typed, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	call := func(t *testing.T, space, what, body string) controlplane.Result {
		return answered(typed.Discovery().RESTClient().Put().SetHeader("Content-Type", "application/json").
			AbsPath("/apis/subresources.kubevirt.io/v1/namespaces", space, "virtualmachines/web", what).Body([]byte(body)).Do(t.Context()).Error())
	}

	stopped := func(t *testing.T, space string) {
		eventually(t, "virt-controller has written that the VM is stopped", func() string {
			if got := in(t, space).field(vms, "web", "status", "printableStatus"); got != "Stopped" {
				return "printableStatus is " + got
			}
			return ""
		})
	}
	t.Run("virt-controller keeps the status", func(t *testing.T) { stopped(t, "vault") })
	volume := encode(object{"name": "data", "disk": object{"disk": object{"bus": "scsi"}}, "volumeSource": object{"persistentVolumeClaim": object{"claimName": "data"}}})
	// With one feature gate, virt-api writes status, and then virt-controller changes spec; with the other, virt-api changes spec itself.
	for gate, written := range map[string]string{"HotplugVolumes": "unable to patch vm status: ", "DeclarativeHotplugVolumes": "unable to patch vm: "} {
		t.Run("a volume is not plugged in with feature gate "+gate, func(t *testing.T) {
			mustPass(t, in(t, "kubevirt").patch(kubeVirts, "kubevirt",
				encode(object{"spec": object{"configuration": object{"developerConfiguration": object{"featureGates": []any{gate}}}}})))
			eventually(t, "virt-api has read its configuration, and is refused", func() string {
				result := call(t, "vault", "addvolume", volume)
				if result.Code == 0 || !strings.Contains(result.Stderr, written) || !strings.Contains(result.Stderr, unplugged("vault").message) {
					return "not refused: " + result.Stderr
				}
				return ""
			})
			stored := in(t, "vault").get(vms, "web")
			if got := text(stored, "status", "volumeRequests") + text(stored, "spec", "template", "spec", "volumes"); got != "" {
				t.Errorf("there is %s", got)
			}
			mustPass(t, in(t, "free").create(web(nil)))
			stopped(t, "free")
			if result := call(t, "free", "addvolume", volume); result.Code != 0 {
				t.Errorf("refused where nothing is governed: %s", result.Stderr)
			}
			eventually(t, "the volume is in the spec", func() string {
				volumes, _, err := unstructured.NestedSlice(in(t, "free").get(vms, "web").Object, "spec", "template", "spec", "volumes")
				if err != nil || len(volumes) != 1 || volumes[0].(object)["name"] != "data" {
					return fmt.Sprintf("volumes are %v", volumes)
				}
				return ""
			})
			mustPass(t, in(t, "free").delete(vms, "web"))
			// It has a finalizer of virt-controller.
			eventually(t, "the VM is gone", func() string {
				if in(t, "free").exists(vms, "web") {
					return "it is there"
				}
				return ""
			})
		})
	}
	t.Run("a machine is started, and virt-controller makes its instance", func(t *testing.T) {
		if result := call(t, "vault", "start", "{}"); result.Code != 0 {
			t.Fatal(result.Stderr)
		}
		eventually(t, "there is an instance", func() string {
			if !in(t, "vault").exists(instances, "web") {
				return "there is none: " + in(t, "vault").field(vms, "web", "status", "conditions")
			}
			return ""
		})
		if got := in(t, "vault").field(vms, "web", "spec", "runStrategy"); got != "Always" {
			t.Errorf("runStrategy is %q", got)
		}
	})
}
