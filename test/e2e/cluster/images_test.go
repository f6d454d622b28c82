package cluster_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/cluster"
	"github.com/vmstencil/stencil/test/cluster/node"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// importTimeout bounds an import or a clone of a disk of some MiB.
const importTimeout = "--timeout=4m"

// TestAnImageIsImportedAndLent imports the guest's disk from the registry by CDI, compares its bytes, and boots a VM of ada's, who may not copy
// from the namespace of the image, from a copy of it that the template lends.
func TestAnImageIsImportedAndLent(t *testing.T) {
	namespace := namespaces.Of(t)
	at, err := node.InRegistry(cluster.GuestImage)
	if err != nil {
		t.Fatal(err)
	}
	const manifests = `apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {name: small, namespace: golden}
spec:
  source: {registry: {url: "docker://%s"}}
  storage: {resources: {requests: {storage: 128Mi}}}
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataSource
metadata: {name: small, namespace: golden}
spec: {source: {pvc: {name: small, namespace: golden}}}
---
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata:
  name: disk
  namespace: golden
  labels: {stencil.kubevirt.io/disk-access: Lend}
spec:
  parameters:
  - {name: NAME, required: true}
  - {name: PASSWORD, generate: expression, from: "[a-z0-9]{12}"}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Always
      dataVolumeTemplates:
      - metadata: {name: "${NAME}"}
        spec:
          sourceRef: {kind: DataSource, name: small, namespace: golden}
          storage: {resources: {requests: {storage: 128Mi}}}
      template:
        spec:
          terminationGracePeriodSeconds: 5
          domain:
            machine: {type: q35}
            memory: {guest: 128Mi}
            devices:
              disks:
              - {name: boot, disk: {bus: virtio}}
              - {name: init, disk: {bus: virtio}}
              interfaces: [{name: default, masquerade: {}}]
          networks: [{name: default, pod: {}}]
          volumes:
          - {name: boot, dataVolume: {name: "${NAME}"}}
          - name: init
            cloudInitNoCloud: {userData: "#cloud-config\nhostname: ${NAME}\nuser: ada\npassword: ${PASSWORD}\n"}
`
	harness.Must(t, kube.Plane, nil, fmt.Sprintf(manifests, at), "create", "--filename=-")
	harness.Must(t, kube.Plane, nil, "", "wait", "datavolume", "small", "--namespace=golden", "--for=jsonpath={.status.phase}=Succeeded", importTimeout)
	want, size := guestDigest(t)
	got := inPod(t, "golden", "digest", "small", fmt.Sprintf("head -c %d /data/disk.img | sha256sum", size))
	if !strings.HasPrefix(got, want) {
		t.Errorf("CDI imported the bytes %s, the disk in the registry has %s", got, want)
	}

	if denied := as(t, ada, "golden", "", "auth", "can-i", "create", "datavolumes/source"); denied.Code == 0 {
		t.Error("ada may copy from the namespace of the image herself")
	}
	harness.Must(t, kube.Plane, ada, gen.Manifest(gen.VM("web", gen.FromTemplate("golden/disk"))), "create", "--namespace="+namespace, "--filename=-")
	for _, condition := range []string{"create", "jsonpath={.status.phase}=Succeeded"} {
		harness.Must(t, kube.Plane, ada, "", "wait", "datavolume", "web", "--namespace="+namespace, "--for="+condition, importTimeout)
	}
	console := loggedIn(t, namespace)
	t.Logf("the serial console:\n%s", console.Text())
	if facts := facts(t, namespace, "web"); len(facts["hostname"]) != 1 || facts["hostname"][0] != "web" {
		t.Errorf("the guest sees %v", facts)
	}
	t.Run("a capture of the running VM", func(t *testing.T) { captured(t, namespace, console) })
}

// captured writes to the disk of the guest behind its content, captures the VM while it runs, and reads the text in a VM of the new template.
func captured(t *testing.T, namespace string, console *cluster.Console) {
	run := func(console *cluster.Console, command, want string) {
		t.Helper()
		if err := console.Send(command + "\n"); err != nil {
			t.Fatal(err)
		}
		if err := console.Await(t.Context(), want, bootLimit); err != nil {
			t.Fatal(err)
		}
	}
	run(console, "echo captured | dd of=/dev/vda bs=1M seek=100 conv=notrunc,fsync 2>/dev/null; echo wrote-$?", "wrote-0")
	request := `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest", "metadata": {"name": "web"}, "spec": {"virtualMachineRef": {"namespace": "` + namespace + `", "name": "web"}}}`
	harness.Must(t, kube.Plane, ada, request, "create", "--namespace="+namespace, "--filename=-")
	harness.Must(t, kube.Plane, ada, "", "wait", "virtualmachinetemplaterequest", "web", "--namespace="+namespace, "--for=condition=Ready", importTimeout)
	harness.Must(t, kube.Plane, ada, "", "delete", "virtualmachine", "web", "--namespace="+namespace)
	harness.Must(t, kube.Plane, ada, gen.Manifest(gen.VM("web", gen.FromTemplate("web"))), "create", "--namespace="+namespace, "--filename=-")
	run(loggedIn(t, namespace), "dd if=/dev/vda bs=1M skip=100 count=1 2>/dev/null | head -n 1", "\ncaptured\n")
}

// guestDigest returns the SHA-256 digest and the size of the guest's disk.
func guestDigest(t *testing.T) (digest string, size int64) {
	t.Helper()
	disk, err := cluster.GuestDisk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sum := sha256.New()
	if size, err = io.Copy(sum, file); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil)), size
}
