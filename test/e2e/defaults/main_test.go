// Package defaults_test creates and changes VirtualMachines as their owners do, on a real API server with KubeVirt's own admission, and a manager
// with a defaulter that uses the libvirt and QEMU of this host. They must be installed.
package defaults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	stencil *platform.Platform
	sidecar *defaulter.Defaulter
	// ada owns VirtualMachines in team-a and in vault, which is governed, and may use the golden templates.
	ada *controlplane.User
)

const prepared = `
apiVersion: v1
kind: Namespace
metadata: {name: vault, labels: {tier: vault}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: owner, namespace: vault}
rules: [{apiGroups: [kubevirt.io], resources: [virtualmachines], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: owner, namespace: vault}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: owner}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada}]
---
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: pinned, namespace: golden}
spec:
  parameters: [{name: MACHINE, value: q35, enum: [q35, virt]}]
  virtualMachine:
    spec:
      runStrategy: Halted
      template:
        spec:
          domain:
            machine: {type: "${MACHINE}"}
            resources: {requests: {memory: 1Gi}}
            devices:
              disks: [{name: root, disk: {bus: virtio}}]
          volumes:
          - {name: root, containerDisk: {image: registry.example.com/fedora}}
          - {name: seed, cloudInitNoCloud: {userData: "#cloud-config"}}
---
apiVersion: stencil.kubevirt.io/v1alpha1
kind: TemplateApproval
metadata: {name: vault}
spec:
  namespaceSelector: {matchLabels: {tier: vault}}
  templates: [{namespace: golden, name: pinned}]
  parameters: [{name: MACHINE, allowed: [q35]}]
  overrides: [spec.runStrategy]
`

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if sidecar, err = defaulter.New(); err != nil {
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
		Log:               os.Stderr,
		// The chart grants the permissions for MAC addresses; separate tests have some generated.
		APIServer:     true,
		APIServerArgs: []string{"--defaulting-socket=" + sidecar.Socket(), "--defaulting-mac=never"},
		ManagerArgs:   []string{"--defaulting-socket=" + sidecar.Socket(), "--defaulting-mac=never", "--audit-interval=2s", "--installation-interval=1s"},
		Values:        map[string]any{"defaulting": map[string]any{"enabled": true, "mac": "generate"}},
		Folders:       []string{filepath.Dir(sidecar.Socket())},
	}); err != nil {
		return stop, err
	}
	return func() error { return errors.Join(stencil.Stop(), sidecar.Close()) }, prepare(ctx)
}

func prepare(ctx context.Context) (err error) {
	if ada, err = stencil.Plane.User("ada", "team-a"); err != nil {
		return err
	}
	if err := harness.Apply(ctx, stencil.Plane, "", stencil.Example("golden"), stencil.Example("access")); err != nil {
		return err
	}
	if err := harness.Apply(ctx, stencil.Plane, prepared, "-"); err != nil {
		return err
	}
	// All of this applies as soon as the manager has read the approval and the template, and the API server calls the webhook.
	last := ""
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		denied, err := stencil.Plane.Kubectl(ctx, ada, vmObject("probe", "vault", "golden/fedora", ""), "create", "--dry-run=server", "-f", "-")
		if err != nil {
			return false, err
		}
		filled, err := stencil.Plane.Kubectl(ctx, ada, vmObject("probe", "vault", "golden/pinned", ""), "create", "--dry-run=server", "-o", "json", "-f", "-")
		last = denied.Stderr + filled.Stderr
		return strings.Contains(denied.Stderr, "not approved") && strings.Contains(filled.Stdout, "pciAddress"), err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for approval and defaults: %w: %s", err, last), errors.New(stencil.Manager.Logs()))
	}
	return nil
}

// kubectl runs kubectl as a user, in team-a unless the arguments contain another namespace.
func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, stdin, harness.In("team-a", arguments)...)
}

func mustKubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Must(t, stencil.Plane, as, stdin, harness.In("team-a", arguments)...)
}

// discard deletes VirtualMachines when the test ends.
func discard(t *testing.T, namespace string, names ...string) {
	t.Helper()
	harness.Discard(t, stencil.Plane, namespace, names...)
}

// stored returns a VirtualMachine as it is stored.
func stored(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(mustKubectl(t, nil, "", "--namespace="+namespace, "get", "virtualmachine", name, "-o", "json").Stdout)); err != nil {
		t.Fatal(err)
	}
	return &u
}

// at returns the value at a path, in JSON; empty when there is none. An item of a list is found by its name.
func at(t *testing.T, vm *unstructured.Unstructured, path ...string) string {
	t.Helper()
	var value any = vm.Object
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			value = nil
			for _, item := range v {
				if object, ok := item.(map[string]any); ok && object["name"] == step {
					value = object
				}
			}
		default:
			value = nil
		}
	}
	if value == nil {
		return ""
	}
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// domain returns a field below the domain of a VM.
func domain(t *testing.T, vm *unstructured.Unstructured, path ...string) string {
	t.Helper()
	return at(t, vm, append([]string{"spec", "template", "spec", "domain"}, path...)...)
}

// vmObject returns the manifest of a VirtualMachine that refers to a template.
func vmObject(name, namespace, ref, rest string) string {
	return fmt.Sprintf("apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: %s\n  namespace: %s\n  annotations:\n    template.kubevirt.io/template-ref: %s\n%s", name, namespace, ref, rest)
}

// vmWith returns the manifest of a VirtualMachine with two virtio disks and without a template.
func vmWith(name, more string) string {
	return `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: ` + name + `, namespace: team-a}
spec:
  runStrategy: Halted
  template:
    spec:
      domain:
        machine: {type: q35}
        memory: {guest: 1Gi}
        devices:
          disks:
          - {name: root, disk: {bus: virtio` + more + `}}
          - {name: data, disk: {bus: virtio}}
          interfaces: [{name: default, masquerade: {}}]
      networks: [{name: default, pod: {}}]
      volumes:
      - {name: root, containerDisk: {image: registry.example.com/fedora}}
      - {name: data, emptyDisk: {capacity: 1Gi}}
`
}
