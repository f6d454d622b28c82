package controlplane

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

func TestComponentsAreAddedToARunningPlane(t *testing.T) {
	plane := StartFor(t, Options{CDILater: true})
	if err := plane.InstallVirtualizationCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	own := namespace(t, plane)
	if created := kubectl(t, plane, nil, vmManifest("before", haltedSpec), "create", "-n", own, "-f", "-"); created.Code != 0 {
		t.Fatal(created.Stderr)
	}
	if got := kubectl(t, plane, nil, "", "get", "datavolumes"); !strings.Contains(got.Stderr, "the server doesn't have a resource type") {
		t.Fatalf("CDI is there already: %s%s", got.Stdout, got.Stderr)
	}
	if err := plane.StartCDI(t.Context()); err == nil {
		t.Fatal("CDI was started without kube-controller-manager")
	}

	if err := errors.Join(plane.StartControllerManager(t.Context()), plane.StartCDI(t.Context()), plane.StartKubeVirt(t.Context())); err != nil {
		t.Fatal(err)
	}

	t.Run("virt-controller takes over a VirtualMachine that was stored before", func(t *testing.T) {
		becomes(t, plane, own, "vm/before", ".status.printableStatus", "Stopped")
	})
	t.Run("virt-api defaults a new one", func(t *testing.T) {
		if created := kubectl(t, plane, nil, vmManifest("after", haltedSpec), "create", "-n", own, "-f", "-"); created.Code != 0 {
			t.Fatal(created.Stderr)
		}
		becomes(t, plane, own, "vm/after", ".spec.template.spec.architecture", runtime.GOARCH)
		becomes(t, plane, own, "vm/after", ".status.printableStatus", "Stopped")
	})
	t.Run("virt-controller is started again after it has ended", func(t *testing.T) {
		if err := plane.halt("virt-controller"); err != nil {
			t.Fatal(err)
		}
		apply(t, plane, own, vmManifest("again", haltedSpec))
		becomes(t, plane, own, "vm/again", ".status.printableStatus", "Stopped")
	})
	t.Run("CDI imports a volume", func(t *testing.T) {
		apply(t, plane, own, dataVolume("imported", `{"http": {"url": "http://images.example/fedora.qcow2"}}`))
		becomes(t, plane, own, "dv/imported", ".status.phase", "Succeeded")
	})
	t.Run("the ClusterRole edit has the rules of KubeVirt", func(t *testing.T) {
		user, err := plane.User("editor")
		if err != nil {
			t.Fatal(err)
		}
		if err := plane.Bind(t.Context(), user, own, "edit"); err != nil {
			t.Fatal(err)
		}
		if got := kubectl(t, plane, user, "", "get", "vm", "-n", own); got.Code != 0 {
			t.Error(got.Stderr)
		}
	})
	t.Run("each of them once", func(t *testing.T) {
		for name, start := range map[string]error{
			"kube-controller-manager": plane.StartControllerManager(t.Context()),
			"KubeVirt":                plane.StartKubeVirt(t.Context()),
		} {
			if start == nil || !strings.Contains(start.Error(), name+" already") {
				t.Errorf("want an error that %s is there already, got %v", name, start)
			}
		}
	})
}
