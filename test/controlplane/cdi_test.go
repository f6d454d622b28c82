package controlplane

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane/csi"
	"github.com/vmstencil/stencil/test/controlplane/kubelet"
)

// dataVolume is the manifest of a DataVolume of 1 GiB.
func dataVolume(name, source string) string {
	return fmt.Sprintf(`{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
		"metadata": {"name": %q, "annotations": {"cdi.kubevirt.io/storage.bind.immediate.requested": ""}},
		"spec": {"source": %s, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}`, name, source)
}

// snapshotOf is the manifest of a VolumeSnapshot.
func snapshotOf(name, claim string) string {
	return fmt.Sprintf(`{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": %q},
		"spec": {"source": {"persistentVolumeClaimName": %q}}}`, name, claim)
}

// apply creates the objects of a manifest.
func apply(t *testing.T, plane *Plane, namespace, manifest string) {
	t.Helper()
	if got := kubectl(t, plane, nil, manifest, "create", "-n", namespace, "-f", "-"); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
}

// becomes waits until a field of an object contains a text.
func becomes(t *testing.T, plane *Plane, namespace, object, path, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s has %q at %s", object, want, path), func() error {
		got := kubectl(t, plane, nil, "", "get", object, "-n", namespace, "-o", "jsonpath={"+path+"}")
		if got.Code != 0 || !strings.Contains(got.Stdout, want) {
			more := kubectl(t, plane, nil, "", "get", object, "-n", namespace, "-o", "jsonpath={.status}")
			return errors.New(got.Stdout + got.Stderr + " of " + more.Stdout)
		}
		return nil
	})
}

func TestCDIFillsVolumesFromEverything(t *testing.T) {
	plane := shared.Plane(t)
	own, other := namespace(t, plane), namespace(t, plane)
	apply(t, plane, own, dataVolume("imported", `{"http": {"url": "http://images.example/fedora.qcow2"}}`))
	becomes(t, plane, own, "dv/imported", ".status.phase", "Succeeded")
	becomes(t, plane, own, "pvc/imported", ".status.phase", "Bound")

	apply(t, plane, own, snapshotOf("taken", "imported"))
	becomes(t, plane, own, "volumesnapshot/taken", ".status.readyToUse", "true")
	becomes(t, plane, own, "volumesnapshot/taken", ".status.restoreSize", "1Gi")
	becomes(t, plane, own, "volumesnapshot/taken", ".status.boundVolumeSnapshotContentName", "snapcontent-")

	for namespace, name := range map[string]string{own: "here", other: "there"} {
		apply(t, plane, namespace, dataVolume(name+"-snapshot", fmt.Sprintf(`{"snapshot": {"namespace": %q, "name": "taken"}}`, own)))
		apply(t, plane, namespace, dataVolume(name+"-claim", fmt.Sprintf(`{"pvc": {"namespace": %q, "name": "imported"}}`, own)))
		for _, from := range []string{"-snapshot", "-claim"} {
			becomes(t, plane, namespace, "dv/"+name+from, ".status.phase", "Succeeded")
			becomes(t, plane, namespace, "pvc/"+name+from, ".status.phase", "Bound")
		}
	}
	for _, namespace := range []string{own, other} {
		if got := kubectl(t, plane, nil, "", "delete", "dv,pvc,volumesnapshot", "--all", "-n", namespace, "--timeout=60s"); got.Code != 0 {
			t.Error(got.Stderr)
		}
	}
	eventually(t, "no volume and no content is left", func() error {
		got := kubectl(t, plane, nil, "", "get", "pv,volumesnapshotcontent", "-o",
			`jsonpath={range .items[*]}{.kind}/{.metadata.name} of {.spec.claimRef.namespace}{.spec.volumeSnapshotRef.namespace}{"\n"}{end}`)
		// The plane is shared with other tests.
		left := slices.DeleteFunc(strings.Split(got.Stdout, "\n"), func(line string) bool {
			return !strings.HasSuffix(line, " of "+own) && !strings.HasSuffix(line, " of "+other)
		})
		if got.Code != 0 || len(left) > 0 {
			return errors.New(strings.Join(left, "\n") + got.Stderr)
		}
		return nil
	})
}

func TestAMachineWithItsDataVolumeIsSnapshotted(t *testing.T) {
	plane := shared.Plane(t)
	own := namespace(t, plane)
	apply(t, plane, own, vmManifest("web", `{"runStrategy": "Halted",
		"dataVolumeTemplates": [{"metadata": {"name": "web-root"}, "spec": {
			"source": {"http": {"url": "http://images.example/fedora.qcow2"}},
			"storage": {"resources": {"requests": {"storage": "1Gi"}}}}}],
		"template": {"spec": {
			"domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}, "memory": {"guest": "1Gi"}},
			"volumes": [{"name": "root", "dataVolume": {"name": "web-root"}}]}}}`))
	becomes(t, plane, own, "dv/web-root", ".status.phase", "Succeeded")
	becomes(t, plane, own, "vm/web", ".status.printableStatus", "Stopped")
	apply(t, plane, own, `{"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "metadata": {"name": "before"},
		"spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}}}`)
	becomes(t, plane, own, "vmsnapshot/before", ".status.phase", "Succeeded")
	becomes(t, plane, own, "vmsnapshot/before", ".status.readyToUse", "true")
	becomes(t, plane, own, "volumesnapshot", ".items[*].status.readyToUse", "true")
}

func TestTheDriverObeysItsRules(t *testing.T) {
	plane := shared.Plane(t)
	own := namespace(t, plane)
	claim := func(name string) { apply(t, plane, own, claimOf(name)) }
	t.Run("a volume that cannot be provisioned is reported on its claim and made later", func(t *testing.T) {
		plane.CSI().When(csi.ProvisionVolume, csi.Rule{Namespace: own, Name: "full", Fail: "the pool is full", Times: 2})
		claim("full")
		becomes(t, plane, own, "events", ".items[*].message", `failed to provision volume with StorageClass "csi": the pool is full`)
		becomes(t, plane, own, "pvc/full", ".status.phase", "Bound")
	})
	t.Run("a snapshot that fails says why and recovers", func(t *testing.T) {
		claim("data")
		becomes(t, plane, own, "pvc/data", ".status.phase", "Bound")
		remove := plane.CSI().When(csi.TakeSnapshot, csi.Rule{Namespace: own, Name: "failing", Fail: "the array is offline"})
		apply(t, plane, own, snapshotOf("failing", "data"))
		becomes(t, plane, own, "volumesnapshot/failing", ".status.error.message", "the array is offline")
		remove()
		becomes(t, plane, own, "volumesnapshot/failing", ".status.readyToUse", "true")
	})
	t.Run("a snapshot that is held goes on when the rule is removed", func(t *testing.T) {
		remove := plane.CSI().When(csi.ReadySnapshot, csi.Rule{Namespace: own, Name: "held", Hold: true})
		apply(t, plane, own, snapshotOf("held", "data"))
		becomes(t, plane, own, "volumesnapshot/held", ".status.restoreSize", "1Gi")
		becomes(t, plane, own, "volumesnapshot/held", ".status.readyToUse", "false")
		remove()
		becomes(t, plane, own, "volumesnapshot/held", ".status.readyToUse", "true")
	})
	t.Run("a snapshot that is ready before it is bound ends up bound, however often it is written", func(t *testing.T) {
		for _, step := range []csi.Step{csi.BindSnapshot, csi.TakeSnapshot, csi.ReadySnapshot} {
			defer plane.CSI().When(step, csi.Rule{Namespace: own, Name: "odd", Disorder: true, Repeat: 3})()
		}
		apply(t, plane, own, snapshotOf("odd", "data"))
		becomes(t, plane, own, "volumesnapshot/odd", ".status.boundVolumeSnapshotContentName", "snapcontent-")
		becomes(t, plane, own, "volumesnapshot/odd", ".status.readyToUse", "true")
	})
	t.Run("a snapshot vanishes while it is taken", func(t *testing.T) {
		plane.CSI().When(csi.ReadySnapshot, csi.Rule{Namespace: own, Name: "vanishing", Vanish: true})
		apply(t, plane, own, snapshotOf("vanishing", "data"))
		vanishes(t, plane, own, "volumesnapshot/vanishing")
	})
	t.Run("a claim whose volume vanishes is lost", func(t *testing.T) {
		if err := plane.CSI().VanishVolume(t.Context(), own, "data"); err != nil {
			t.Fatal(err)
		}
		becomes(t, plane, own, "pvc/data", ".status.phase", "Lost")
	})
	t.Run("an importer that fails shows its message on the DataVolume, and succeeds when it no longer fails", func(t *testing.T) {
		remove := plane.Nodes().When(kubelet.Rule{Namespace: own, Prefix: "importer-", Fail: "Unable to process data: 404 Not Found"})
		apply(t, plane, own, dataVolume("absent", `{"http": {"url": "http://images.example/absent.qcow2"}}`))
		becomes(t, plane, own, "dv/absent", ".status.conditions[?(@.type==\"Running\")].message", "404 Not Found")
		remove()
		becomes(t, plane, own, "dv/absent", ".status.phase", "Succeeded")
	})
}
