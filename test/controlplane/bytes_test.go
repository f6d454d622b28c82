package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/controlplane/csi"
)

// TestDisksHaveBytes has a plane of its own, because its end has to end the pods' processes.
func TestDisksHaveBytes(t *testing.T) {
	plane, err := Start(t.Context(), Options{ControllerManager: true, Processes: Processes{
		Label: processLabel, Programs: map[string]string{"worker": "/bin/sh"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	// Storage and nodes without CDI, which takes longer to start.
	if err := plane.InstallSnapshotCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.startStorage(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	t.Run("the bytes of a volume follow its snapshots and clones", func(t *testing.T) { bytesFollow(t, plane) })
	t.Run("a volume with a filesystem is a folder", func(t *testing.T) { folderFollows(t, plane) })
	t.Run("a volume that is expanded has more bytes", func(t *testing.T) { bytesGrow(t, plane) })
	t.Run("pods run as processes", func(t *testing.T) { podsRunAsProcesses(t, plane) })
	t.Run("nothing is left of volumes and snapshots that are deleted", func(t *testing.T) {
		// A claim exists as long as a pod uses it, and a snapshot as long as a claim waits for it.
		for _, kind := range []string{"job", "pod", "pvc", "volumesnapshot"} {
			if got := kubectl(t, plane, nil, "", "delete", kind, "--all", "-A", "--timeout=60s"); got.Code != 0 {
				t.Error(got.Stderr)
			}
		}
		eventually(t, "the folder of volumes is empty", func() error {
			left, err := os.ReadDir(filepath.Join(plane.Dir(), "volumes"))
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("%d entries: %v", len(left), left)
			}
			return err
		})
	})
	t.Run("stopping the plane ends the pods' processes", func(t *testing.T) { stopEndsProcesses(t, plane) })
}

// claim is the manifest of a claim with a volume mode, filled from a source like `{"kind": …}` if there is one.
func claim(name, mode, size, source string) string {
	if source != "" {
		source = `, "dataSource": ` + source
	}
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": %q}, "spec": {"accessModes": ["ReadWriteOnce"],
		"volumeMode": %q, "resources": {"requests": {"storage": %q}}%s}}`, name, mode, size, source)
}

func bound(t *testing.T, plane *Plane, namespace, manifest, name string) {
	t.Helper()
	apply(t, plane, namespace, manifest)
	becomes(t, plane, namespace, "pvc/"+name, ".status.phase", "Bound")
}

// content returns the beginning of the disk of a claim.
func content(t *testing.T, plane *Plane, namespace, claim string, length int) string {
	t.Helper()
	path, err := plane.CSI().DiskPath(t.Context(), namespace, claim)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	read := make([]byte, length)
	if _, err := io.ReadFull(file, read); err != nil {
		t.Fatal(err)
	}
	return string(read)
}

func write(t *testing.T, plane *Plane, namespace, claim, text string) {
	t.Helper()
	if err := plane.CSI().WriteDisk(t.Context(), namespace, claim, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

// allocated returns the apparent and the allocated size of a file.
func allocated(t *testing.T, path string) (size, blocks int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size(), info.Sys().(*syscall.Stat_t).Blocks * 512
}

const (
	fromSnapshot = `{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "taken"}`
	fromClaim    = `{"kind": "PersistentVolumeClaim", "name": "disk"}`
)

func bytesFollow(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	bound(t, plane, own, claim("disk", "Block", "1Gi", ""), "disk")
	write(t, plane, own, "disk", "before")
	apply(t, plane, own, snapshotOf("taken", "disk"))
	becomes(t, plane, own, "volumesnapshot/taken", ".status.readyToUse", "true")
	write(t, plane, own, "disk", "after!")

	bound(t, plane, own, claim("restored", "Block", "2Gi", fromSnapshot), "restored")
	bound(t, plane, own, claim("cloned", "Block", "1Gi", fromClaim), "cloned")
	for name, want := range map[string]string{"disk": "after!", "restored": "before", "cloned": "after!"} {
		if got := content(t, plane, own, name, 6); got != want {
			t.Errorf("the claim %s has %q, want %q", name, got, want)
		}
	}
	path, block, err := plane.CSI().Path(t.Context(), own, "restored")
	if err != nil || !block {
		t.Fatalf("a volume of mode Block is at %s, a device: %t, %v", path, block, err)
	}
	if size, blocks := allocated(t, path); size != 2<<30 || blocks > 1<<20 {
		t.Errorf("the restored volume has %d bytes, %d of them allocated", size, blocks)
	}
	write(t, plane, own, "cloned", "other!")
	for name, want := range map[string]string{"disk": "after!", "restored": "before", "cloned": "other!"} {
		if got := content(t, plane, own, name, 6); got != want {
			t.Errorf("after clones were written, %s has %q, want %q", name, got, want)
		}
	}
	deletesBytes(t, plane, own, "pvc/restored", "restored")
	if got := content(t, plane, own, "cloned", 6); got != "other!" {
		t.Errorf("after other volumes were deleted, the clone has %q", got)
	}
}

// deletesBytes deletes an object, and waits until the bytes of its claim are gone.
func deletesBytes(t *testing.T, plane *Plane, namespace, object, claim string) {
	t.Helper()
	path, _, err := plane.CSI().Path(t.Context(), namespace, claim)
	if err != nil {
		t.Fatal(err)
	}
	if got := kubectl(t, plane, nil, "", "delete", object, "-n", namespace, "--timeout=60s"); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	eventually(t, "the bytes of "+object+" are deleted", func() error {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s exists: %w", path, err)
		}
		return nil
	})
}

func folderFollows(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	bound(t, plane, own, claim("disk", "Filesystem", "1Gi", ""), "disk")
	write(t, plane, own, "disk", "before")
	apply(t, plane, own, snapshotOf("taken", "disk"))
	becomes(t, plane, own, "volumesnapshot/taken", ".status.readyToUse", "true")
	write(t, plane, own, "disk", "after!")
	bound(t, plane, own, claim("restored", "Filesystem", "1Gi", fromSnapshot), "restored")
	if got := content(t, plane, own, "restored", 6); got != "before" {
		t.Errorf("the restored volume has %q", got)
	}
	path, block, err := plane.CSI().Path(t.Context(), own, "restored")
	if err != nil || block {
		t.Fatalf("a volume of mode Filesystem is at %s, a device: %t, %v", path, block, err)
	}
	if size, blocks := allocated(t, filepath.Join(path, csi.DiskFile)); size != 1<<30 || blocks > 1<<20 {
		t.Errorf("the disk has %d bytes, %d of them allocated", size, blocks)
	}
	apply(t, plane, own, claim("changed", "Block", "1Gi", fromSnapshot))
	awaitEvent(t, plane, "changed", fmt.Sprintf(
		`Warning ProvisioningFailed: failed to provision volume with StorageClass "csi": requested volume %s/changed modifies the mode of the source volume but does not have permission to do so`, own))
}

func bytesGrow(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	bound(t, plane, own, claim("disk", "Block", "1Gi", ""), "disk")
	write(t, plane, own, "disk", "before")
	if err := plane.CSI().WriteDisk(t.Context(), own, "disk", zeros(1<<30+1)); err == nil {
		t.Error("more was written than the volume can have")
	}
	write(t, plane, own, "disk", "before")
	if got := kubectl(t, plane, nil, "", "patch", "pvc/disk", "-n", own, "--type=merge", "-p", `{"spec": {"resources": {"requests": {"storage": "3Gi"}}}}`); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	becomes(t, plane, own, "pvc/disk", ".status.capacity.storage", "3Gi")
	path, _, err := plane.CSI().Path(t.Context(), own, "disk")
	if err != nil {
		t.Fatal(err)
	}
	if size, _ := allocated(t, path); size != 3<<30 || content(t, plane, own, "disk", 6) != "before" {
		t.Errorf("the expanded volume has %d bytes", size)
	}
}

// zeros returns n zeros.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(buffer []byte) (int, error) {
	clear(buffer)
	return len(buffer), nil
}

func TestBytesFollowTheClonesOfCDI(t *testing.T) {
	plane := shared.Plane(t)
	own, other := namespace(t, plane), namespace(t, plane)
	bound(t, plane, own, claim("disk", "Block", "1Gi", ""), "disk")
	write(t, plane, own, "disk", "before")
	apply(t, plane, own, snapshotOf("taken", "disk"))
	becomes(t, plane, own, "volumesnapshot/taken", ".status.readyToUse", "true")
	write(t, plane, own, "disk", "after!")
	for _, namespace := range []string{own, other} {
		for kind, want := range map[string]string{"snapshot": "before", "pvc": "after!"} {
			source := map[string]string{"snapshot": "taken", "pvc": "disk"}[kind]
			name := "from-" + kind
			apply(t, plane, namespace, fmt.Sprintf(`{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
				"metadata": {"name": %q, "annotations": {"cdi.kubevirt.io/storage.bind.immediate.requested": ""}},
				"spec": {"source": {%q: {"namespace": %q, "name": %q}}, "storage": {"volumeMode": "Block", "accessModes": ["ReadWriteOnce"],
				"resources": {"requests": {"storage": "1Gi"}}}}}`, name, kind, own, source))
			becomes(t, plane, namespace, "dv/"+name, ".status.phase", "Succeeded")
			if got := content(t, plane, namespace, name, 6); got != want {
				t.Errorf("what CDI cloned from a %s has %q, want %q", kind, got, want)
			}
		}
	}
	write(t, plane, other, "from-pvc", "other!")
	for _, name := range []string{"disk", "from-pvc"} {
		if got := content(t, plane, own, name, 6); got != "after!" {
			t.Errorf("after the clone in another namespace was written, %s has %q", name, got)
		}
	}
	deletesBytes(t, plane, other, "dv/from-pvc", "from-pvc")
}

func TestASimulatedImportLeavesThePatternOfItsURL(t *testing.T) {
	plane := shared.Plane(t)
	own := namespace(t, plane)
	const url = "http://images.example/fedora.qcow2"
	apply(t, plane, own, dataVolume("imported", fmt.Sprintf(`{"http": {"url": %q}}`, url)))
	becomes(t, plane, own, "dv/imported", ".status.phase", "Succeeded")
	want, err := io.ReadAll(csi.Pattern(url))
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, plane, own, "imported", len(want)); !bytes.Equal([]byte(got), want) {
		t.Error("the imported disk has other bytes than the pattern")
	}
}
