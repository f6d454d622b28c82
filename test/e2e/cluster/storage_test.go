package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/cluster"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

// shellImage has a shell.
var shellImage = "quay.io/kubevirt/virt-launcher:" + controlplane.KubeVirt18.Version

// claim returns a claim of the cluster's storage. The source is empty, or the field dataSource.
func claim(name, size, source string) string {
	if source != "" {
		source = `, "dataSource": ` + source
	}
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": %q}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": %q}}%s}}`, name, size, source)
}

// inPod runs a script in a pod with a claim at /data, and returns what it prints.
func inPod(t *testing.T, namespace, name, of, script string) string {
	t.Helper()
	pod := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %[1]q}, "spec": {"restartPolicy": "Never",
		"containers": [{"name": "shell", "image": %[2]q, "command": ["sh", "-ec", %[3]q], "securityContext": {"runAsUser": 0}, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
		"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": %[4]q}}]}}`, name, shellImage, script, of)
	makes(t, nil, namespace, pod)
	awaits(t, nil, namespace, "pod", name, "jsonpath={.status.phase}=Succeeded")
	return as(t, nil, namespace, "", "logs", name).Stdout
}

// TestVolumes writes to a volume, and reads its snapshot, its clone, and itself after it has grown.
func TestVolumes(t *testing.T) {
	namespace := namespaces.Of(t)
	make := func(manifest string) { makes(t, nil, namespace, manifest) }
	make(claim("data", "64Mi", ""))
	inPod(t, namespace, "first", "data", "echo first > /data/text")
	make(`{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "daily"}, "spec": {"source": {"persistentVolumeClaimName": "data"}}}`)
	awaits(t, nil, namespace, "volumesnapshot", "daily", "jsonpath={.status.readyToUse}=true")
	inPod(t, namespace, "second", "data", "echo second > /data/text")
	make(claim("back", "64Mi", `{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "daily"}`))
	make(claim("clone", "96Mi", `{"kind": "PersistentVolumeClaim", "name": "data"}`))
	for of, want := range map[string]string{"back": "first", "clone": "second"} {
		if got := strings.TrimSpace(inPod(t, namespace, "reads-"+of, of, "cat /data/text")); got != want {
			t.Errorf("%s has %q, want %q", of, got, want)
		}
	}
	harness.Must(t, kube.Plane, nil, "", "patch", "persistentvolumeclaim", "data", "--namespace="+namespace, `--patch={"spec": {"resources": {"requests": {"storage": "128Mi"}}}}`)
	awaits(t, nil, namespace, "persistentvolumeclaim", "data", "jsonpath={.status.capacity.storage}=128Mi")
	size := inPod(t, namespace, "grown", "data", "df -m --output=size /data | tail -n 1; cat /data/text")
	var megabytes int
	if _, err := fmt.Sscan(size, &megabytes); err != nil || megabytes < 100 || !strings.Contains(size, "second") {
		t.Errorf("after it has grown, the volume has %s", size)
	}
	full := inPod(t, namespace, "full", "back", "dd if=/dev/zero of=/data/zeros bs=1M count=100 2>&1 || true")
	if !strings.Contains(full, "No space left on device") {
		t.Errorf("a volume of 64 MiB takes 100: %s", full)
	}
}

// loggedIn waits until the guest of the VM web runs, and logs in at its console.
func loggedIn(t *testing.T, user *controlplane.User, namespace string) *cluster.Console {
	t.Helper()
	running(t, namespace, "web")
	console := openConsole(t, user, namespace, "web")
	password, err := kube.GeneratedPassword(t.Context(), user, namespace, "web")
	if err == nil {
		err = console.LogIn(t.Context(), "ada", password, 3*time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
	return console
}
