// Package gitops_test applies VirtualMachines from templates as Argo CD and Flux do, with the libraries of their controllers, as an account that has the
// role edit and may use templates. The API server has KubeVirt's own admission, and a manager with a defaulter that uses the libvirt and QEMU of this
// host. They must be installed.
package gitops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	stencil *platform.Platform
	// robot is the service account of a GitOps controller.
	robot *controlplane.User
	// tools are the programs that act as Argo CD and as Flux.
	tools map[string]string
)

const (
	// golden has the templates. free has no approval, and vault has one.
	golden, free, vault = "golden", "free", "vault"
	argoCD, flux        = "argocd-engine", "flux-engine"
)

// secret is the value of a sensitive parameter.
const secret = "open-sesame"

// trackers are what the tools write on every object: Argo CD, kustomize-controller and helm-controller.
var trackers = []string{`metadata.annotations["argocd.argoproj.io/tracking-id"]`,
	`metadata.labels["kustomize.toolkit.fluxcd.io/name"]`, `metadata.labels["kustomize.toolkit.fluxcd.io/namespace"]`}

func TestMain(m *testing.M) { harness.Main(m, begin) }

func begin(ctx context.Context) (stop func() error, err error) {
	if tools, err = controlplane.Tools(ctx, argoCD, flux); err != nil {
		return nil, err
	}
	sidecar, err := defaulter.New()
	if err != nil {
		return nil, err
	}
	stop = sidecar.Close
	if err := sidecar.Start(ctx); err != nil {
		return stop, err
	}
	if stencil, err = platform.Start(ctx, platform.Options{
		KubeVirt: true,
		// It aggregates the role edit.
		ControllerManager: true,
		ManagerArgs:       []string{"--defaulting-socket=" + sidecar.Socket(), "--defaulting-mac=never", "--audit-interval=2s"},
		Values:            map[string]any{"defaulting": map[string]any{"enabled": true, "mac": "generate"}},
	}); err != nil {
		return stop, err
	}
	return func() error { return errors.Join(stencil.Stop(), sidecar.Close()) }, prepare(ctx)
}

// prepare creates the template and the approval, and waits until both apply and defaults are written.
func prepare(ctx context.Context) (err error) {
	if err := harness.Apply(ctx, stencil.Plane, gen.Manifest(
		gen.Namespace(golden), gen.Namespace(free), gen.Namespace(vault),
		gen.Template("server", gen.InNamespace(golden),
			gen.Declares("NAME"), gen.Declares("CORES", "{type: int, value: '1'}"), gen.Declares("PASSWORD", "{sensitive: true, generate: expression, from: '[a-z]{12}'}"),
			gen.Renders("${NAME}", gen.Memory("1Gi"), gen.RunStrategy("Halted"), gen.ContainerDisk("root", "registry.example.com/fedora"),
				gen.CloudInit("seed", "#cloud-config\npassword: ${PASSWORD}\n"),
				gen.Spec(`template: {spec: {domain: {cpu: {cores: "${{CORES}}"}, devices: {interfaces: [{name: default, masquerade: {}}]}}, networks: [{name: default, pod: {}}]}}`))),
		gen.Template("plain", gen.InNamespace(golden), gen.Declares("NAME"),
			gen.Renders("${NAME}", gen.Memory("1Gi"), gen.RunStrategy("Halted"), gen.ContainerDisk("root", "registry.example.com/fedora"),
				gen.Spec(`template: {spec: {domain: {devices: {interfaces: [{name: default, masquerade: {}}]}}, networks: [{name: default, pod: {}}]}}`))),
		gen.Approval("vault", gen.Governs(vault), gen.Approves(golden+"/server", golden+"/plain"), gen.AnyValue("CORES", "PASSWORD"), gen.Overrides(append(trackers, "spec.runStrategy",
			"spec.template.spec.domain.devices.disks[name=data]", "spec.template.spec.volumes[name=data]",
			"spec.template.spec.domain.devices.interfaces[name=storage]", "spec.template.spec.networks[name=storage]")...)),
	), "-"); err != nil {
		return err
	}
	if robot, err = gen.User(ctx, stencil.Plane, "robot", gen.Role(free, "edit"), gen.Role(vault, "edit"), gen.UsesTemplates(golden)); err != nil {
		return err
	}
	return deadline.Wait(ctx, "approval and defaults apply", time.Minute, func(ctx context.Context) error {
		probe := gen.Manifest(gen.VM("probe", gen.InNamespace(vault), gen.FromTemplate(golden+"/server")))
		filled, err := stencil.Plane.Kubectl(ctx, robot, probe, "create", "--dry-run=server", "-o", "json", "-f", "-")
		if err != nil {
			return err
		}
		denied, err := stencil.Plane.Kubectl(ctx, robot, strings.Replace(probe, "annotations:", "labels: {other: label}\n  annotations:", 1), "create", "--dry-run=server", "-f", "-")
		if err == nil && (!strings.Contains(filled.Stdout, "pciAddress") || !strings.Contains(denied.Stderr, "not approved")) {
			err = fmt.Errorf("%s\n%s", filled.Stderr, denied.Stderr)
		}
		return err
	})
}

// run runs one of the tools with the objects of an application, as robot, and decodes what it prints.
func run(t *testing.T, tool, namespace, manifest string, report any, arguments ...string) error {
	t.Helper()
	command := exec.CommandContext(t.Context(), tools[tool], append([]string{"-kubeconfig=" + robot.Kubeconfig, "-namespace=" + namespace}, arguments...)...)
	command.Stdin = strings.NewReader(manifest)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, stderr.String())
	}
	return json.Unmarshal(stdout.Bytes(), report)
}

// What an application has: VMs by a reference and parameters alone, with lists that are merged by name, with lists written in full, with a sensitive
// parameter, and one that runs, with a disk and a sensitive parameter.
const (
	short  = "short"
	lists  = "lists"
	full   = "full"
	hidden = "hidden"
	all    = "all"
)

const page = "../../../docs/integrations.md"

// virtualMachines of an application. The prefix begins their names. They stay until the platform ends: without a node nothing ends one that
// runs.
func virtualMachines(t *testing.T, namespace, prefix string) map[string]*unstructured.Unstructured {
	t.Helper()
	data := gen.Spec(`template:
  spec:
    domain:
      devices:
        disks: [{name: data, disk: {bus: virtio}}]
    volumes: [{name: data, emptyDisk: {capacity: 1Gi}}]
`)
	storage := gen.Spec(`template:
  spec:
    domain:
      devices:
        interfaces: [{name: storage, bridge: {}}]
    networks: [{name: storage, multus: {networkName: storage-net}}]
`)
	made := map[string]*unstructured.Unstructured{}
	add := func(name, template string, modifiers ...gen.Modifier) {
		made[name] = gen.VM(prefix+name, append([]gen.Modifier{gen.InNamespace(namespace), gen.FromTemplate(golden + "/" + template)}, modifiers...)...)
	}
	example := testfile.Block(t, page, "## Argo CD", "yaml")
	add(short, "server", gen.Fields(strings.NewReplacer("golden/small", golden+"/server", "web-1", prefix+short, "team-a", namespace).Replace(example)))
	add(lists, "server", data, storage)
	add(full, "plain", gen.Memory("1Gi"), gen.RunStrategy("Halted"), gen.Spec(`template:
  spec:
    domain:
      devices:
        disks: [{name: root, disk: {bus: virtio}}, {name: data, disk: {bus: virtio}}]
        interfaces: [{name: default, masquerade: {}}]
    networks: [{name: default, pod: {}}]
    volumes: [{name: root, containerDisk: {image: registry.example.com/fedora}}, {name: data, emptyDisk: {capacity: 1Gi}}]
`))
	add(hidden, "server", gen.Parameter("PASSWORD", secret))
	add(all, "server", data, gen.Parameter("PASSWORD", secret), gen.RunStrategy("Always"))
	return made
}

// manifest of an application.
func manifest(vms map[string]*unstructured.Unstructured) string {
	return gen.Manifest(slices.Collect(maps.Values(vms))...)
}

// get returns a field of VirtualMachines as they are stored, in JSON path.
func get(t *testing.T, namespace, name, path string) string {
	t.Helper()
	return harness.Must(t, stencil.Plane, nil, "", "--namespace="+namespace, "get", "vm", name, "-o", "jsonpath="+path).Stdout
}

// settled waits until virt-controller has written all that it writes on new VMs.
func settled(t *testing.T, namespace string, vms map[string]*unstructured.Unstructured) {
	t.Helper()
	harness.Eventually(t, "virt-controller has written the status of the machines", func() error {
		for _, vm := range vms {
			if get(t, namespace, vm.GetName(), "{.status.printableStatus}") == "" {
				return errors.New(vm.GetName() + " has no status")
			}
		}
		return nil
	})
}

// drift changes VirtualMachines by hand: a field that the manifest has, and one in a list.
func drift(t *testing.T, namespace string, vms map[string]*unstructured.Unstructured) {
	t.Helper()
	for name, patch := range map[string]string{
		all:   `[{"op": "replace", "path": "/spec/runStrategy", "value": "Manual"}]`,
		lists: `[{"op": "replace", "path": "/spec/template/spec/networks/1/multus/networkName", "value": "other-net"}]`,
	} {
		harness.Must(t, stencil.Plane, robot, "", "--namespace="+namespace, "patch", "vm", vms[name].GetName(), "--type=json", "-p", patch)
	}
}

// runs simulates the node of the VM that runs.
func runs(t *testing.T, namespace string, vms map[string]*unstructured.Unstructured) {
	t.Helper()
	name := vms[all].GetName()
	harness.RunInstance(t, stencil.Plane, namespace, name, harness.LauncherPod(t, stencil.Plane, namespace, name), "node-1")
	harness.Eventually(t, "virt-controller reports that the machine runs", func() error {
		return harness.Complaint(strings.TrimPrefix(get(t, namespace, name, "{.status.printableStatus}"), "Running"))
	})
}
