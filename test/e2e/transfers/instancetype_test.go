package transfers_test

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// descriptor of a package of another product, with 4 processors and 8 GiB of memory.
const descriptor = `<?xml version="1.0"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData">
  <References><File ovf:id="file1" ovf:href="disk.vmdk"/></References>
  <DiskSection><Info>Disks</Info>
    <Disk ovf:diskId="disk1" ovf:fileRef="file1" ovf:capacity="67108864" ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/>
  </DiskSection>
  <VirtualSystem ovf:id="builder"><Info>A system</Info>
    <VirtualHardwareSection><Info>Hardware</Info>
      <Item><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>4</rasd:VirtualQuantity></Item>
      <Item><rasd:AllocationUnits>byte * 2^30</rasd:AllocationUnits><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>8</rasd:VirtualQuantity></Item>
      <Item><rasd:HostResource>ovf:/disk/disk1</rasd:HostResource><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceType>17</rasd:ResourceType></Item>
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>`

// foreign is a package of another product, with a disk.
func foreign(t *testing.T) (ova, disk []byte) {
	t.Helper()
	own, disk := appliance(t)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, member := range []struct {
		name    string
		content []byte
	}{{"builder.ovf", []byte(descriptor)}, {"disk.vmdk", unpacked(t, own)["appliance-root.vmdk"]}} {
		if err := w.WriteHeader(&tar.Header{Name: member.name, Mode: 0o644, Size: int64(len(member.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(member.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), disk
}

// TestAnImportWithAnInstanceType imports a package of another product with an instance type: KubeVirt accepts VMs of the template, also where an approval
// lists it.
func TestAnImportWithAnInstanceType(t *testing.T) {
	t.Parallel()
	s := open(t)
	size := s.namespace
	harness.Must(t, stencil.Plane, nil, `{"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype", "metadata": {"name": "`+size+`"},
		"spec": {"cpu": {"guest": 2}, "memory": {"guest": "2Gi"}}}`, "create", "-f", "-")
	t.Cleanup(func() {
		harness.Kubectl(t, stencil.Plane, nil, "", "delete", "virtualmachineclusterinstancetype", size, "--ignore-not-found")
	})
	ova, disk := foreign(t)
	url := offer(t, "builder.ova", ova)
	const noName = `spec.instancetype: Invalid value: "string": must be the name of a VirtualMachineClusterInstancetype: lower case letters, digits, hyphens and dots`
	for given, want := range map[string]string{
		`""`:                strings.Replace(noName, `"string"`, `""`, 1),
		`"Large One"`:       strings.Replace(noName, `"string"`, `"Large One"`, 1),
		`{"name": "large"}`: `spec.instancetype: Invalid value: "object": spec.instancetype in body must be of type string: "object"`,
	} {
		got := harness.Kubectl(t, stencil.Plane, s.owner, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateImport", "metadata": {"name": "no"},
			"spec": {"source": {"http": {"url": "`+url+`"}}, "instancetype": `+given+`}}`, "create", "--validate=ignore", "-f", "-", "-n", s.namespace)
		if got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %s, want %s", given, got.Stderr, want)
		}
	}

	s.imports(t, "web", `{"source": {"http": {"url": "`+url+`"}}, "approval": "Manual", "preference": "None", "instancetype": "`+size+`"}`)
	s.reaches(t, "vmti", "web", "{.status.phase}", "Waiting")
	notes := s.does(t, "", "get", "vmti", "web", "-o", "jsonpath={.status.plan.notes}")
	for _, want := range []string{
		"processors: 4 sockets with 1 cores in the package; VirtualMachines have those of the instance type " + size,
		"memory: 8Gi in the package; VirtualMachines have that of the instance type " + size,
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the plan has the notes %s, want %s", notes, want)
		}
	}
	changed := harness.Kubectl(t, stencil.Plane, s.owner, "", "patch", "vmti", "web", "-n", s.namespace, "--type=merge", "-p", `{"spec": {"instancetype": "other"}}`)
	if want := "spec.instancetype cannot be changed, only spec.approvedPlan and spec.eulaAccepted can: create another import"; changed.Code == 0 || !strings.Contains(changed.Stderr, want) {
		t.Errorf("a change of the instance type: %s", changed.Stderr)
	}
	digest := s.does(t, "", "get", "vmti", "web", "-o", "jsonpath={.status.plan.digest}")
	s.does(t, "", "patch", "vmti", "web", "--type=merge", "-p", `{"spec": {"approvedPlan": "`+digest+`"}}`)
	s.reaches(t, "vmti", "web", "{.status.phase}", "Succeeded")
	if got := s.boots(t, "web", "web-1"); !bytes.Equal(got, disk) {
		t.Error("the disk of the VM has other bytes")
	}
	const sizes = "jsonpath={.spec.instancetype.name} cpu={.spec.template.spec.domain.cpu} memory={.spec.template.spec.domain.memory}"
	want := size + " cpu= memory="
	if got := s.does(t, "", "get", "vm", "web-1", "-o", sizes); got != want {
		t.Errorf("the VM has %s, want %s", got, want)
	}
	of := func(name, spec string) string {
		return `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "` + name + `", "annotations": {"template.kubevirt.io/template-ref": "web"}}` + spec + `}`
	}
	// It is KubeVirt that denies sizes beside an instance type.
	got := harness.Kubectl(t, stencil.Plane, s.owner, of("web-2", `, "spec": {"template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "4Gi"}}}}}`), "create", "--dry-run=server", "-f", "-", "-n", s.namespace)
	if conflict := "spec.template.spec.domain.memory.guest conflicts with selected instance type"; got.Code == 0 || !strings.Contains(got.Stderr, conflict) {
		t.Errorf("memory beside the instance type: %s%s, want %s", got.Stdout, got.Stderr, conflict)
	}

	harness.Must(t, stencil.Plane, nil, gen.Manifest(gen.Approval(s.namespace, gen.Governs(s.namespace), gen.Approves(s.namespace+"/web"), gen.AnyValue("NAME"))), "create", "-f", "-")
	t.Cleanup(func() {
		harness.Kubectl(t, stencil.Plane, nil, "", "delete", "templateapproval", s.namespace, "--ignore-not-found")
	})
	harness.Within(t, "VMs without a template are denied", limit, func() error {
		free := harness.Kubectl(t, stencil.Plane, s.owner, `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "free"}, "spec": {"runStrategy": "Halted",
			"template": {"spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}}}}}`, "create", "--dry-run=server", "-f", "-", "-n", s.namespace)
		if free.Code == 0 {
			return harness.Complaint(free.Stdout)
		}
		return nil
	})
	s.does(t, of("web-3", ""), "create", "-f", "-")
	if got := s.does(t, "", "get", "vm", "web-3", "-o", sizes); got != want {
		t.Errorf("the approved VM has %s, want %s", got, want)
	}
}
