package capture_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

// marked is a VM that a network plugin, a cloud and a backup tool have marked, on a host of its own.
const marked = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: parent1
  labels: {velero.io/restore-name: r1, app: parent1, tier: web}
  annotations: {harvesterhci.io/mac-address: '{"default":"02:00:00:12:34:56"}'}
spec:
  runStrategy: Halted
  instancetype: {kind: VirtualMachineClusterInstancetype, name: u1.medium}
  template:
    metadata:
      annotations:
        ovn.kubernetes.io/ip_address: 192.0.2.15
        ovn.kubernetes.io/mac_address: "02:00:00:53:6B:B6"
        cni.projectcalico.org/ipAddrs: '["192.0.2.16"]'
    spec:
      nodeSelector: {kubernetes.io/hostname: node-3}
      domain:
        devices:
          disks: [{name: root, disk: {bus: virtio}}, {name: init, disk: {bus: virtio}}]
          interfaces: [{name: default, macAddress: "02:00:00:12:34:56", masquerade: {}}]
      networks: [{name: default, pod: {}}]
      volumes:
      - {name: root, containerDisk: {image: "quay.io/containerdisks/fedora:latest"}}
      - name: init
        cloudInitNoCloud:
          userData: "#cloud-config\nhostname: parent1\n"
          networkData: "version: 2\nethernets: {eth0: {match: {macaddress: '02:00:00:12:34:56'}, addresses: [192.0.2.7/24]}}\n"
`

// TestWhatIdentifiesAMachineIsNotInItsTemplate captures the VM, and creates another one of its template.
func TestWhatIdentifiesAMachineIsNotInItsTemplate(t *testing.T) {
	s := real.on(t)
	field, golden := s.namespace(t, "field"), s.namespace(t, "golden")
	s.does(t, marked, "create", "-n", field, "-f", "-")
	s.does(t, request(golden, "r", field, "parent1", `, "templateName": "parent"`), "create", "-f", "-")
	got := s.ends(t, golden, "r")
	if got["Ready"].Status != "True" || got["Complete"].Status != "True" || got["IdentityFound"].Reason != "IdentityKept" {
		t.Fatalf("conditions are %+v", got)
	}
	const guest = "spec.template.spec."
	for _, want := range []string{
		guest + "volumes[1].cloudInitNoCloud.userData (hostname)",
		guest + "volumes[1].cloudInitNoCloud.networkData (ethernets.eth0.addresses: a static address)",
		"left out: metadata.labels[velero.io/restore-name] (written for one VM)",
		guest + "nodeSelector[kubernetes.io/hostname] (its host)",
		"have the new name: metadata.labels[app]",
	} {
		if !strings.Contains(got["IdentityFound"].Message, want) {
			t.Errorf("the condition lacks %q: %s", want, got["IdentityFound"].Message)
		}
	}
	s.does(t, gen.Manifest(gen.VM("child", gen.InNamespace(golden), gen.FromTemplate("parent"))), "create", "-f", "-")
	child := s.does(t, "", "get", "vm", "child", "-n", golden, "-o", "json")
	for _, want := range []string{`"app": "child"`, `"tier": "web"`, `"name": "u1.medium"`} {
		if !strings.Contains(child, want) {
			t.Errorf("the VM lacks %s:\n%s", want, child)
		}
	}
	for _, absent := range []string{"192.0.2.15", "192.0.2.16", "02:00:00:53:6B:B6", "velero", "harvester", "node-3", `"macAddress": "02:00:00:12:34:56"`} {
		if strings.Contains(child, absent) {
			t.Errorf("the VM has %s:\n%s", absent, child)
		}
	}
}
