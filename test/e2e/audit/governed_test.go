package audit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/platform"
)

// replayed returns a team with VirtualMachines that an approval selects, and templates for them: one that runs without a disk from elsewhere, one
// with an instance type, and one with a disk that KubeVirt creates.
func replayed() string {
	shelf := []gen.Modifier{gen.InNamespace("kiosks"), gen.Declares("NAME")}
	image := gen.ContainerDisk("root", "registry.example/kiosk:v1")
	return gen.Manifest(
		gen.Namespace("kiosks"), gen.Namespace("stage"),
		gen.Template("kiosk", append(shelf, gen.Renders("${NAME}", gen.SmallSpec(), gen.RunStrategy("Always"), image))...),
		gen.Template("sized", append(shelf, gen.Renders("${NAME}", gen.LeastSpec(), gen.RunStrategy("Always"), image,
			gen.Spec("instancetype: {kind: VirtualMachineClusterInstancetype, name: u1.small}")))...),
		gen.Template("stand", append(shelf, gen.Renders("${NAME}", gen.SmallSpec(), gen.DataVolumeDisk("root", "${NAME}-root", "source: {blank: {}}")))...),
		gen.Approval("stage", gen.Governs("stage"), gen.Approves("kiosks/*"),
			gen.Overrides("spec.runStrategy", "spec.template.spec.volumes", "spec.template.spec.domain.devices.disks")))
}

// minute bounds the time until the audit reports a change.
const minute = time.Minute

// governedPlatform is a platform with KubeVirt and an audit that begins only when an object changes.
type governedPlatform struct{ *platform.Platform }

func startGoverned(t *testing.T) governedPlatform {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	p, err := platform.Start(ctx, platform.Options{
		KubeVirt: true, ControllerManager: true, ManagerArgs: []string{"--audit-interval=24h"}, Log: os.Stderr,
		Values: map[string]any{"entryPoints": map[string]any{"hotplug": "Open"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := governedPlatform{p}
	if err := harness.Apply(ctx, p.Plane, replayed(), "-"); err != nil {
		t.Fatal(err)
	}
	s.must(t, nil, "", "wait", "namespace/stage", "--for=jsonpath={.metadata.labels.stencil\\.kubevirt\\.io/governed}=true")
	return s
}

func (s governedPlatform) kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, s.Plane, as, stdin, harness.In("stage", arguments)...)
}

func (s governedPlatform) must(t *testing.T, as *controlplane.User, stdin string, arguments ...string) string {
	t.Helper()
	return strings.TrimSpace(harness.Must(t, s.Plane, as, stdin, harness.In("stage", arguments)...).Stdout)
}

// user has the role edit in the namespace, and may use the templates.
func (s governedPlatform) user(t *testing.T) *controlplane.User {
	t.Helper()
	user := harness.User(t, s.Plane, "tenant", gen.Role("stage", "edit"), gen.UsesTemplates("kiosks"))
	return user
}

func instantiated(name, from string) string {
	return gen.Manifest(gen.VM(name, gen.FromTemplate("kiosks/"+from)))
}

// pod waits for the launcher pod of a VM.
func (s governedPlatform) pod(t *testing.T, name string) string {
	t.Helper()
	return harness.LauncherPod(t, s.Plane, "stage", name)
}

// status returns the status of the approval.
func (s governedPlatform) status(t *testing.T) v1alpha1.TemplateApprovalStatus {
	t.Helper()
	var a v1alpha1.TemplateApproval
	if err := yaml.Unmarshal([]byte(s.must(t, nil, "", "get", "templateapproval", "stage", "-o", "yaml")), &a); err != nil {
		t.Fatal(err)
	}
	return a.Status
}

// causes returns the causes of the violations, by name.
func causes(status v1alpha1.TemplateApprovalStatus) map[string]string {
	found := map[string]string{}
	for _, violation := range status.Violations {
		found[violation.Name] = violation.Cause
	}
	return found
}

// conforms waits until the given number of VMs conform and none violates.
func (s governedPlatform) conforms(t *testing.T, what string, vms int32) {
	t.Helper()
	harness.Within(t, what, minute, func() error {
		status := s.status(t)
		if status.Conforming == nil || *status.Conforming != vms || *status.Violating != 0 {
			return fmt.Errorf("status: %+v, violations %v", status.Conforming, causes(status))
		}
		return nil
	})
}

// disarm deletes Stencil's policies, their bindings and its webhooks, and the manifests from which self-protection restores them.
func (s governedPlatform) disarm(t *testing.T) {
	t.Helper()
	s.must(t, nil, "", "delete", "clusterrolebinding/stencil-protected-objects", "clusterrole/stencil-protected-objects")
	s.must(t, nil, "", "delete", "configmap", "stencil-protected-objects", "--namespace", install.Namespace)
	registrations := "validatingadmissionpolicybinding,validatingadmissionpolicy,mutatingwebhookconfiguration,validatingwebhookconfiguration"
	s.must(t, nil, "", "delete", registrations, "--selector=app.kubernetes.io/part-of=stencil")
	harness.Eventually(t, "nothing of Stencil decides on requests", func() error {
		if left := s.must(t, nil, "", "get", registrations, "--selector=app.kubernetes.io/part-of=stencil", "-o", "name"); left != "" {
			return errors.New("there is still " + left)
		}
		if out := s.kubectl(t, nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"probe","labels":{"kubevirt.io":"virt-launcher"}},"spec":{"containers":[{"name":"a","image":"b"}]}}`,
			"create", "--dry-run=server", "-f", "-"); out.Code != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
}

// migrate has an instance migrated, and waits for the pod of the target.
func (s governedPlatform) migrate(t *testing.T, name, from, annotations string) (target string) {
	t.Helper()
	s.must(t, nil, fmt.Sprintf("apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstanceMigration\nmetadata: {name: %s, annotations: {%s}}\nspec: {vmiName: %s}\n", name, annotations, name), "create", "-f", "-")
	harness.Eventually(t, "virt-controller has made the pod of the target of "+name, func() error {
		for pod := range strings.FieldsSeq(s.must(t, nil, "", "get", "pod", "-l", "kubevirt.io=virt-launcher,vm.kubevirt.io/name="+name, "-o", "jsonpath={.items[*].metadata.name}")) {
			if pod != from {
				target = pod
				return nil
			}
		}
		return errors.New(s.kubectl(t, nil, "", "get", "vmim,vmi,events", "-o", "yaml").Stdout)
	})
	return target
}
