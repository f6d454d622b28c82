package controlplane

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/controlplane/csi"
)

// claimOf is the manifest of a claim.
func claimOf(name string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": %q},
		"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}`, name)
}

// vanishes waits until an object no longer exists.
func vanishes(t *testing.T, plane *Plane, namespace, object string) {
	t.Helper()
	eventually(t, object+" is gone", func() error {
		if got := kubectl(t, plane, nil, "", "get", object, "-n", namespace); !strings.Contains(got.Stderr, "NotFound") {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
}

// field returns the result of a JSONPath in an object.
func field(t *testing.T, plane *Plane, namespace, object, path string) string {
	t.Helper()
	got := kubectl(t, plane, nil, "", "get", object, "-n", namespace, "-o", "jsonpath={"+path+"}")
	if got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	return got.Stdout
}

// awaitEvent waits for an event about an object in any namespace.
func awaitEvent(t *testing.T, plane *Plane, name, want string) {
	t.Helper()
	eventually(t, "there is the event "+want, func() error {
		got := kubectl(t, plane, nil, "", "get", "events", "-A", "-o",
			`jsonpath={range .items[?(@.involvedObject.name=="`+name+`")]}{.type} {.reason}: {.message}{"\n"}{end}`)
		if got.Code != 0 || !strings.Contains(got.Stdout, want+"\n") {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
}

func TestStorageTakesItsTime(t *testing.T) {
	const delay = 4 * time.Second
	plane := shared.Plane(t)
	own := namespace(t, plane)
	plane.CSI().When(csi.ProvisionVolume, csi.Rule{Namespace: own, Name: "slow", Delay: delay, Times: 1})
	began := time.Now()
	apply(t, plane, own, claimOf("slow"))
	apply(t, plane, own, claimOf("quick"))
	becomes(t, plane, own, "pvc/quick", ".status.phase", "Bound")
	if got := field(t, plane, own, "pvc/slow", ".status.phase"); got != "Pending" && time.Since(began) < delay {
		t.Errorf("the claim whose volume takes its time is %s", got)
	}
	becomes(t, plane, own, "pvc/slow", ".status.phase", "Bound")
	if took := time.Since(began); took < delay {
		t.Errorf("a volume that takes %s was there after %s", delay, took)
	}

	for _, step := range []csi.Step{csi.BindSnapshot, csi.TakeSnapshot, csi.ReadySnapshot} {
		plane.CSI().When(step, csi.Rule{Namespace: own, Name: "slow", Delay: delay / 4, Times: 1})
	}
	began = time.Now()
	apply(t, plane, own, snapshotOf("slow", "quick"))
	becomes(t, plane, own, "volumesnapshot/slow", ".status.readyToUse", "true")
	if took := time.Since(began); took < 3*delay/4 {
		t.Errorf("a snapshot whose three steps take %s each was ready after %s", delay/4, took)
	}
}

func TestStorageDeletesAndExpandsAsItsRulesSay(t *testing.T) {
	plane := shared.Plane(t)
	own := namespace(t, plane)
	remove := func(object string) {
		t.Helper()
		if got := kubectl(t, plane, nil, "", "delete", object, "-n", own, "--wait=false"); got.Code != 0 {
			t.Fatal(got.Stderr)
		}
	}
	// volume makes a claim and returns the name of its volume.
	volume := func(t *testing.T, claim string) string {
		t.Helper()
		apply(t, plane, own, claimOf(claim))
		becomes(t, plane, own, "pvc/"+claim, ".status.phase", "Bound")
		return field(t, plane, own, "pvc/"+claim, ".spec.volumeName")
	}
	enlarge := func(t *testing.T, claim string) {
		t.Helper()
		got := kubectl(t, plane, nil, "", "patch", "pvc/"+claim, "-n", own, "--type=merge", "-p", `{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}`)
		if got.Code != 0 {
			t.Fatal(got.Stderr)
		}
	}
	t.Run("a volume stays behind its claim while its deletion is held, and goes afterwards", func(t *testing.T) {
		pv := volume(t, "held")
		release := plane.CSI().When(csi.DeleteVolume, csi.Rule{Namespace: own, Name: "held", Hold: true})
		remove("pvc/held")
		vanishes(t, plane, own, "pvc/held")
		becomes(t, plane, own, "pv/"+pv, ".status.phase", "Released")
		if got := field(t, plane, own, "pv/"+pv, ".metadata.deletionTimestamp"); got != "" {
			t.Errorf("its deletion is held, and began at %s", got)
		}
		release()
		vanishes(t, plane, own, "pv/"+pv)
	})
	t.Run("a volume that cannot be deleted says why, and is deleted later", func(t *testing.T) {
		pv := volume(t, "busy")
		plane.CSI().When(csi.DeleteVolume, csi.Rule{Namespace: own, Name: "busy", Fail: "the volume is in use", Times: 2})
		remove("pvc/busy")
		awaitEvent(t, plane, pv, "Warning VolumeFailedDelete: the volume is in use")
		vanishes(t, plane, own, "pv/"+pv)
	})
	t.Run("a snapshot waits with its content until that can be deleted", func(t *testing.T) {
		volume(t, "data")
		apply(t, plane, own, snapshotOf("kept", "data"))
		becomes(t, plane, own, "volumesnapshot/kept", ".status.readyToUse", "true")
		content := field(t, plane, own, "volumesnapshot/kept", ".status.boundVolumeSnapshotContentName")
		release := plane.CSI().When(csi.DeleteSnapshot, csi.Rule{Namespace: own, Name: "kept", Fail: "the array is offline"})
		remove("volumesnapshot/kept")
		awaitEvent(t, plane, content, "Warning SnapshotDeleteError: Failed to delete snapshot")
		for _, object := range []string{"volumesnapshot/kept", "volumesnapshotcontent/" + content} {
			if got := field(t, plane, own, object, ".metadata.deletionTimestamp"); got == "" {
				t.Errorf("%s is not being deleted", object)
			}
		}
		release()
		vanishes(t, plane, own, "volumesnapshot/kept")
		vanishes(t, plane, own, "volumesnapshotcontent/"+content)
	})
	t.Run("a snapshot vanishes instead of being deleted", func(t *testing.T) {
		apply(t, plane, own, snapshotOf("vanishing", "data"))
		becomes(t, plane, own, "volumesnapshot/vanishing", ".status.readyToUse", "true")
		content := field(t, plane, own, "volumesnapshot/vanishing", ".status.boundVolumeSnapshotContentName")
		plane.CSI().When(csi.DeleteSnapshot, csi.Rule{Namespace: own, Name: "vanishing", Vanish: true})
		remove("volumesnapshot/vanishing")
		vanishes(t, plane, own, "volumesnapshot/vanishing")
		vanishes(t, plane, own, "volumesnapshotcontent/"+content)
	})
	t.Run("a claim that cannot be expanded says why, and is expanded later", func(t *testing.T) {
		pv := volume(t, "small")
		release := plane.CSI().When(csi.ExpandVolume, csi.Rule{Namespace: own, Name: "small", Fail: "the pool is full"})
		enlarge(t, "small")
		awaitEvent(t, plane, "small", fmt.Sprintf("Warning VolumeResizeFailed: resize volume %q by resizer %q failed: the pool is full", pv, csi.Name))
		for _, object := range []string{"pvc/small .status.capacity.storage", "pv/" + pv + " .spec.capacity.storage"} {
			name, path, _ := strings.Cut(object, " ")
			if got := field(t, plane, own, name, path); got != "1Gi" {
				t.Errorf("%s is %s before it could be expanded", object, got)
			}
		}
		release()
		becomes(t, plane, own, "pvc/small", ".status.capacity.storage", "2Gi")
		becomes(t, plane, own, "pv/"+pv, ".spec.capacity.storage", "2Gi")
	})
	t.Run("a claim whose expansion is held, delayed and repeated is expanded in the end", func(t *testing.T) {
		volume(t, "patient")
		release := plane.CSI().When(csi.ExpandVolume, csi.Rule{Namespace: own, Name: "patient", Hold: true})
		enlarge(t, "patient")
		defer plane.CSI().When(csi.ExpandVolume, csi.Rule{Namespace: own, Name: "patient", Delay: time.Second, Repeat: 2})()
		began := time.Now()
		release()
		becomes(t, plane, own, "pvc/patient", ".status.capacity.storage", "2Gi")
		if took := time.Since(began); took < time.Second {
			t.Errorf("an expansion that takes a second was done after %s", took)
		}
		becomes(t, plane, own, "pvc/patient", `.metadata.annotations.csi\.stencil\.test/repeated`, "1")
	})
	t.Run("a claim vanishes while it is expanded", func(t *testing.T) {
		volume(t, "lost")
		plane.CSI().When(csi.ExpandVolume, csi.Rule{Namespace: own, Name: "lost", Vanish: true})
		enlarge(t, "lost")
		vanishes(t, plane, own, "pvc/lost")
	})
}
