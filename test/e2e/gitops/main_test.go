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
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/deadline"
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

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
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
		gen.Approval("vault", gen.Governs(vault), gen.Approves(golden+"/server"), gen.AnyValue("CORES", "PASSWORD"), gen.Overrides(append(trackers, "spec.runStrategy",
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

// virtualMachines are those of an application: by a reference alone, with lists that are merged, with a sensitive parameter, and with all of these.
func virtualMachines(namespace, prefix string) []*unstructured.Unstructured {
	lists := gen.Spec(`template:
  spec:
    domain:
      devices:
        disks: [{name: data, disk: {bus: virtio}}]
        interfaces: [{name: storage, bridge: {}}]
    networks: [{name: storage, multus: {networkName: storage-net}}]
    volumes: [{name: data, emptyDisk: {capacity: 1Gi}}]
`)
	vm := func(name string, modifiers ...gen.Modifier) *unstructured.Unstructured {
		return gen.VM(prefix+name, append([]gen.Modifier{gen.InNamespace(namespace), gen.FromTemplate(golden + "/server")}, modifiers...)...)
	}
	return []*unstructured.Unstructured{
		vm("-short"), vm("-lists", lists), vm("-secret", gen.Parameter("PASSWORD", secret)),
		vm("-all", lists, gen.Parameter("CORES", "2"), gen.Parameter("PASSWORD", secret), gen.RunStrategy("Manual")),
	}
}

// stored returns a VirtualMachine as it is stored.
func stored(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	var vm unstructured.Unstructured
	if err := vm.UnmarshalJSON([]byte(harness.Must(t, stencil.Plane, nil, "", "--namespace="+namespace, "get", "vm", name, "-o", "json").Stdout)); err != nil {
		t.Fatal(err)
	}
	return &vm
}

// synced waits until virt-controller has written all that it writes on new VMs.
func synced(t *testing.T, namespace string, vms []*unstructured.Unstructured) {
	t.Helper()
	harness.Eventually(t, "virt-controller has seen the machines", func() error {
		for _, vm := range vms {
			if status, _, _ := unstructured.NestedString(stored(t, namespace, vm.GetName()).Object, "status", "printableStatus"); status == "" {
				return errors.New(vm.GetName() + " has no status")
			}
		}
		return nil
	})
}
