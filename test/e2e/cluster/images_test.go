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
	"github.com/vmstencil/stencil/test/controlplane"
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
	makes(t, nil, "golden", fmt.Sprintf(manifests, at))
	awaits(t, nil, "golden", "datavolume", "small", "jsonpath={.status.phase}=Succeeded")
	disk, err := cluster.GuestDisk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, size := digestOf(t, disk)
	got := inPod(t, "golden", "digest", "small", fmt.Sprintf("head -c %d /data/disk.img | sha256sum", size))
	if !strings.HasPrefix(got, want) {
		t.Errorf("CDI imported the bytes %s, the disk in the registry has %s", got, want)
	}

	if denied := as(t, ada, "golden", "", "auth", "can-i", "create", "datavolumes/source"); denied.Code == 0 {
		t.Error("ada may copy from the namespace of the image herself")
	}
	makes(t, ada, namespace, gen.Manifest(gen.VM("web", gen.FromTemplate("golden/disk"))))
	for _, condition := range []string{"create", "jsonpath={.status.phase}=Succeeded"} {
		awaits(t, ada, namespace, "datavolume", "web", condition)
	}
	console := loggedIn(t, ada, namespace)
	t.Logf("the serial console:\n%s", console.Text())
	if facts := facts(t, namespace, "web"); len(facts["hostname"]) != 1 || facts["hostname"][0] != "web" {
		t.Errorf("the guest sees %v", facts)
	}
	// Each step continues with the VM of the one before, at its console.
	console = captured(t, namespace, console)
	restored(t, namespace, console)
	packaged(t, namespace)
}

// onDisk is where tests write a text: the disk of the guest, behind its content.
const onDisk = "bs=1M %s=100 2>/dev/null"

// writes makes the guest write a text to its disk.
func writes(t *testing.T, console *cluster.Console, text string) {
	t.Helper()
	types(t, console, "echo "+text+" | dd of=/dev/vda conv=notrunc,fsync "+fmt.Sprintf(onDisk, "seek")+"; echo wrote-$?", "wrote-0")
}

// reads requires that the guest reads a text from its disk.
func reads(t *testing.T, console *cluster.Console, text string) {
	t.Helper()
	types(t, console, "dd if=/dev/vda count=1 "+fmt.Sprintf(onDisk, "skip")+" | head -n 1", "\n"+text+"\n")
}

// types types a command at a console, and waits until a text is there.
func types(t *testing.T, console *cluster.Console, command, want string) {
	t.Helper()
	err := console.Send(command + "\n")
	if err == nil {
		err = console.Await(t.Context(), want, bootLimit)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// captured captures the VM while it runs, reads what it has written in a VM of the new template, and returns the console of that one.
func captured(t *testing.T, namespace string, console *cluster.Console) *cluster.Console {
	writes(t, console, "captured")
	request := `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest", "metadata": {"name": "web"}, "spec": {"virtualMachineRef": {"namespace": "` + namespace + `", "name": "web"}}}`
	makes(t, ada, namespace, request)
	awaits(t, ada, namespace, "virtualmachinetemplaterequest", "web", "condition=Ready")
	replaced(t, ada, namespace, "web")
	console = loggedIn(t, ada, namespace)
	reads(t, console, "captured")
	return console
}

// restored restores the VM from a snapshot of KubeVirt, and reads what it had written before.
func restored(t *testing.T, namespace string, console *cluster.Console) {
	writes(t, console, "before")
	makes(t, ada, namespace, `{"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "metadata": {"name": "daily"}, "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}}}`)
	awaits(t, ada, namespace, "virtualmachinesnapshot", "daily", "jsonpath={.status.readyToUse}=true")
	writes(t, console, "after")
	runs := func(strategy string) {
		harness.Must(t, kube.Plane, ada, "", "patch", "virtualmachine", "web", "--namespace="+namespace, "--type=merge", `--patch={"spec": {"runStrategy": "`+strategy+`"}}`)
	}
	runs("Halted")
	awaits(t, ada, namespace, "virtualmachineinstance", "web", "delete")
	makes(t, ada, namespace, `{"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore", "metadata": {"name": "back"},
		"spec": {"target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}, "virtualMachineSnapshotName": "daily"}}`)
	awaits(t, ada, namespace, "virtualmachinerestore", "back", "jsonpath={.status.complete}=true")
	runs("Always")
	reads(t, loggedIn(t, ada, namespace), "before")
}

// makes creates objects.
func makes(t *testing.T, user *controlplane.User, namespace, manifest string) {
	t.Helper()
	harness.Must(t, kube.Plane, user, manifest, "create", "--namespace="+namespace, "--filename=-")
}

// awaits waits until a condition of kubectl wait is met. An error shows the object.
func awaits(t *testing.T, user *controlplane.User, namespace, kind, name, condition string) {
	t.Helper()
	if out := as(t, user, namespace, "", "wait", kind, name, "--for="+condition, importTimeout); out.Code != 0 {
		t.Fatalf("%s\n%s", out.Stderr, as(t, user, namespace, "", "get", kind, name, "--output=yaml").Stdout)
	}
}

// replaced deletes the VM web, so that one guest runs at a time, and creates it from a template of the namespace.
func replaced(t *testing.T, user *controlplane.User, namespace, template string) {
	t.Helper()
	harness.Must(t, kube.Plane, user, "", "delete", "virtualmachine", "web", "--namespace="+namespace, "--ignore-not-found")
	makes(t, user, namespace, gen.Manifest(gen.VM("web", gen.FromTemplate(template))))
}

// digestOf returns the SHA-256 digest and the size of a file.
func digestOf(t *testing.T, path string) (digest string, size int64) {
	t.Helper()
	file, err := os.Open(path)
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
