package readiness_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// disked returns a template for VMs with one disk, with these fields of the spec of its DataVolume.
func disked(name, fields string) *unstructured.Unstructured {
	return gen.Template(name, gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(), gen.DataVolumeDisk("root", "${NAME}-root", fields)))
}

// TestVMsStartWithTheDisksThatCDIMakesForThem tests the evaluation of disks with KubeVirt's and CDI's own controllers: every way in which CDI creates
// a disk of a VM, a claim that CDI adopts, and KubeVirt's restores.
func TestVMsStartWithTheDisksThatCDIMakesForThem(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	in := func(arguments ...string) []string { return append(arguments, "-n", own) }
	do := func(t *testing.T, as *controlplane.User, stdin string, arguments ...string) string {
		t.Helper()
		got := s.kubectl(t, as, stdin, in(arguments...)...)
		if got.Code != 0 {
			t.Fatal(got.Stderr)
		}
		return strings.TrimSpace(got.Stdout)
	}
	restorer := harness.User(t, s.Plane, "restorer", gen.Role(own, "edit"))
	s.apply(t, own, image("disk"))
	s.apply(t, own, gen.Manifest(disked("blank", blank), disked("imported", "source: {http: {url: 'http://images.example/fedora.qcow2'}}"),
		disked("cloned", "source: {pvc: {name: disk, namespace: "+own+"}}"), disked("waiting", "{source: {blank: {}}, storage: {storageClassName: "+controlplane.StorageClassWaiting+"}}")))
	s.must(t, gen.Manifest(gen.Approval(own, gen.Governs(own), gen.Approves(own+"/*"), gen.Overrides("spec.runStrategy"), gen.Spec("exemptSubjects: [{kind: User, name: restorer}]"))),
		"apply", "-f", "-")
	t.Cleanup(func() { s.must(t, "", "delete", "templateapproval", own) })
	s.must(t, "", "wait", "namespace/"+own, `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=true`)

	vm := func(name, template, runStrategy string) string {
		return gen.Manifest(gen.VM(name, gen.FromTemplate(template), gen.RunStrategy(runStrategy)))
	}
	create := func(t *testing.T, as *controlplane.User, name, template string) {
		t.Helper()
		s.eventually(t, "VM "+name+" is created", func() error {
			if got := s.kubectl(t, as, vm(name, template, "Always"), in("create", "-f", "-")...); got.Code != 0 {
				return errors.New(got.Stderr)
			}
			return nil
		})
	}
	starts := func(t *testing.T, name string) {
		t.Helper()
		s.eventually(t, "VM "+name+" starts", func() error {
			if got := s.kubectl(t, nil, "", in("get", "vmi", name)...); got.Code != 0 {
				return errors.New(got.Stderr + s.kubectl(t, nil, "", in("get", "vm,dv,pvc,events")...).Stdout)
			}
			return nil
		})
	}
	stays := func(t *testing.T, name, why string) {
		t.Helper()
		s.eventually(t, "VM "+name+" cannot start", func() error {
			got := s.kubectl(t, nil, "", in("get", "events", "--field-selector=involvedObject.kind=VirtualMachine,reason=FailedCreate,involvedObject.name="+name, "-o", "jsonpath={.items[*].message}")...)
			if !strings.Contains(got.Stdout, why) {
				return errors.New(got.Stdout + s.kubectl(t, nil, "", in("get", "vm,vmi,dv,pvc,events")...).Stdout)
			}
			return nil
		})
		if got := s.kubectl(t, nil, "", in("get", "vmi", name)...); got.Code == 0 {
			t.Errorf("it runs: %s", got.Stdout)
		}
	}
	createdBy := func(t *testing.T, claim string) string {
		t.Helper()
		return do(t, nil, "", "get", "pvc", claim, "-o", `jsonpath={.metadata.labels.kubevirt\.io/created-by}`)
	}
	uid := func(t *testing.T, name string) string {
		t.Helper()
		return do(t, nil, "", "get", "vm", name, "-o", "jsonpath={.metadata.uid}")
	}

	for _, template := range []string{"blank", "imported", "cloned", "waiting"} {
		t.Run("a disk that is "+template, func(t *testing.T) {
			create(t, s.owner, template, template)
			starts(t, template)
			if got, want := createdBy(t, template+"-root"), uid(t, template); got != want {
				t.Errorf("the claim was created by %q, want %q", got, want)
			}
		})
	}
	t.Run("a claim that CDI takes over", func(t *testing.T) {
		s.apply(t, own, gen.Manifest(gen.Claim("adopted-root")))
		create(t, restorer, "adopted", "blank")
		s.eventually(t, "CDI has taken it over", func() error {
			if got := s.kubectl(t, nil, "", in("get", "pvc", "adopted-root", "-o", "jsonpath={.metadata.ownerReferences[*].kind}")...); got.Stdout != "DataVolume" {
				return errors.New(got.Stdout + got.Stderr)
			}
			return nil
		})
		stays(t, "adopted", `claim "adopted-root" was not created for VirtualMachine "adopted": it lacks the label`)
		if got := createdBy(t, "adopted-root"); got != "" {
			t.Errorf("the claim was created by %q", got)
		}
	})
	t.Run("restores", func(t *testing.T) {
		do(t, s.owner, vm("source", "blank", "Halted"), "create", "-f", "-")
		s.eventually(t, "the VM has its disk", func() error {
			if got := s.kubectl(t, nil, "", in("get", "dv", "source-root", "-o", "jsonpath={.status.phase}")...); got.Stdout != "Succeeded" {
				return errors.New(got.Stdout + got.Stderr)
			}
			return nil
		})
		do(t, restorer, `{"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "metadata": {"name": "daily"}, "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "source"}}}`, "create", "-f", "-")
		do(t, restorer, "", "wait", "vmsnapshot/daily", "--for=jsonpath={.status.readyToUse}=true", "--timeout=2m")
		for _, target := range []string{"source", "copy"} {
			do(t, restorer, fmt.Sprintf(`{"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore", "metadata": {"name": "to-%s"},
				"spec": {"target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": %q}, "virtualMachineSnapshotName": "daily"}}`, target, target), "create", "-f", "-")
			do(t, restorer, "", "wait", "vmrestore/to-"+target, "--for=jsonpath={.status.complete}=true", "--timeout=2m")
			do(t, restorer, "", "patch", "vm", target, "--type=merge", "-p", `{"spec":{"runStrategy":"Always"}}`)
		}
		starts(t, "source")
		stays(t, "copy", "its label kubevirt.io/created-by names another VirtualMachine")
		s.must(t, "", "patch", "templateapproval", own, "--type=merge", "-p", `{"spec":{"existingDisks":{"policy":"Allow"}}}`)
		starts(t, "copy")
	})
}
