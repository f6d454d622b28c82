package attacks_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// kitchen is a template with many fields that KubeVirt fills in or rewrites, with an instance type and a preference that it infers.
const kitchen = `
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataSource
metadata:
  name: labelled
  namespace: golden
  labels: {instancetype.kubevirt.io/default-instancetype: u1.small, instancetype.kubevirt.io/default-preference: fedora}
spec: {source: {pvc: {name: labelled, namespace: golden}}}
---
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: inferred, namespace: golden}
spec:
  parameters: [{name: NAME, generate: expression, from: "vm-[a-z]{5}"}]
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      instancetype: {inferFromVolume: root}
      preference: {inferFromVolume: root, inferFromVolumeFailurePolicy: Reject}
      dataVolumeTemplates:
      - metadata: {name: "${NAME}-root"}
        spec:
          sourceRef: {kind: DataSource, name: labelled, namespace: golden}
          storage: {resources: {requests: {storage: 10240Mi}}}
      template:
        spec:
          domain: {devices: {}}
          volumes: [{name: root, dataVolume: {name: "${NAME}-root"}}]
---
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: bare, namespace: golden}
spec:
  virtualMachine:
    metadata: {name: bare}
    spec:
      runStrategy: Manual
      template:
        metadata: {labels: {app: bare}}
        spec:
          domain:
            cpu: {cores: 2}
            memory: {guest: 1024Mi}
            features: {acpi: {}, smm: {enabled: true}}
            firmware: {bootloader: {efi: {secureBoot: true}}}
            clock: {utc: {}, timer: {hpet: {present: false}}}
            devices:
              rng: {}
              tpm: {}
              autoattachMemBalloon: false
              disks: [{name: scratch, disk: {bus: virtio}}, {name: image, cdrom: {bus: sata}}]
              interfaces: [{name: default, masquerade: {}, ports: [{port: 80}]}]
          networks: [{name: default, pod: {}}]
          tolerations: [{key: dedicated, operator: Exists}]
          affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
          readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 10}
          volumes:
          - {name: scratch, emptyDisk: {capacity: 1024Mi}}
          - {name: image, containerDisk: {image: "example.com/image:v1"}}
`

// TestWhatWasApprovedIsNeverReported runs the audit with KubeVirt's own admission and controllers: it does not report their additions to
// VirtualMachines, and reports those of a user.
func TestWhatWasApprovedIsNeverReported(t *testing.T) {
	mustKubectl(t, nil, kitchen, "apply", "--namespace=golden", "-f", "-")
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "templateapproval", "audited", "--ignore-not-found")
		mustKubectl(t, nil, kitchen, "delete", "--namespace=golden", "-f", "-")
	})
	space := harness.Namespace(t, stencil.Plane, "audited")
	tenant := harness.User(t, stencil.Plane, "tenant", gen.Role(space, "edit"), gen.UsesTemplates("golden"))
	create := func(manifest string) {
		t.Helper()
		eventually(t, "the fixture is stored", func() string {
			if out := kubectl(t, tenant, manifest, "create", "--namespace="+space, "-f", "-"); out.Code != 0 {
				return out.Stderr
			}
			return ""
		})
	}
	// Created before the approval: a VirtualMachine that was rendered, and has additional fields.
	database := testfile.Read(t, stencil.Example("machines/database.yaml"))
	create(string(database))
	create(vm("extra", "golden/fedora", gen.Fields(`spec:
  template:
    metadata: {annotations: {example.com/sidecar: evil}}
    spec:
      domain: {devices: {watchdog: {name: dog, i6300esb: {action: reset}}, disks: [{name: data, disk: {bus: virtio}}]}}
      volumes: [{name: data, emptyDisk: {capacity: 1Gi}}]
`)))
	mustKubectl(t, nil, gen.Manifest(gen.Approval("audited", gen.Governs(space), gen.Approves("golden/*"), gen.AnyValue("SSH_KEY", "ANSWERS"), gen.Overrides("spec.runStrategy"))),
		"apply", "-f", "-")
	approved := []string{
		vm("fedora", "golden/fedora", gen.Parameter("INSTANCETYPE", "u1.medium"), gen.RunStrategy("Always")),
		vm("ubuntu", "golden/ubuntu", gen.Parameter("CORES", "2"), gen.Parameter("SSH_KEY", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEexampleEXAMPLEexampleEXAMPLEexample ada@example.com")),
		vm("windows", "golden/windows", gen.Parameter("ANSWERS", "answers")),
		vm("inferred", "golden/inferred"),
		vm("bare", "golden/bare"),
	}
	for _, one := range approved {
		create(one)
	}
	if got := mustKubectl(t, tenant, "", "get", "vm", "inferred", "--namespace="+space, "-o", "jsonpath={.spec.instancetype.name} {.spec.preference.name}").Stdout; got != "u1.small fedora" {
		t.Errorf("KubeVirt inferred %q", got)
	}
	want := []string{
		"database: adds to template golden/ubuntu: spec.template.spec.domain.devices.interfaces[name=storage], spec.template.spec.networks[name=storage], spec.template.spec.nodeSelector.disktype",
		`extra: adds to template golden/fedora: spec.template.metadata.annotations["example.com/sidecar"], spec.template.spec.domain.devices.disks[name=data], ` +
			"spec.template.spec.domain.devices.watchdog.i6300esb.action, spec.template.spec.domain.devices.watchdog.name, spec.template.spec.volumes[name=data]",
	}
	// The findings come from an audit; an unrelated change triggers one.
	audits := 0
	eventually(t, "the audit has its findings", func() string {
		audits++
		mustKubectl(t, nil, "", "label", "namespace", space, "--overwrite", fmt.Sprintf("audit=%d", audits))
		var a v1alpha1.TemplateApproval
		if err := yaml.Unmarshal([]byte(mustKubectl(t, nil, "", "get", "templateapproval", "audited", "-o", "yaml").Stdout), &a); err != nil {
			t.Fatal(err)
		}
		if a.Status.Conforming == nil || *a.Status.Conforming+*a.Status.Violating != int32(len(approved)+len(want)) {
			return fmt.Sprintf("not all machines were audited: %+v", a.Status)
		}
		var got []string
		for _, violation := range a.Status.Violations {
			got = append(got, violation.Name+": "+violation.Cause)
		}
		return cmp.Diff(want, got)
	})
}

// TestTheAuditSeesWhatRuns changes running VMs as KubeVirt's own controllers could, which no policy restricts.
func TestTheAuditSeesWhatRuns(t *testing.T) {
	space := namespaces.Of(t)
	controller := harness.Controller(t, stencil.Plane, "kubevirt:kubevirt-controller")
	running(t, "seen")
	// A change of the instance triggers an audit.
	finds := func(what string, want ...string) {
		t.Helper()
		eventually(t, what, func() string {
			var a v1alpha1.TemplateApproval
			if err := yaml.Unmarshal([]byte(mustKubectl(t, nil, "", "get", "templateapproval", "vault", "-o", "yaml").Stdout), &a); err != nil {
				t.Fatal(err)
			}
			if a.Status.Conforming == nil {
				return "nothing was audited"
			}
			var got []string
			for _, violation := range a.Status.Violations {
				if violation.Namespace == space {
					got = append(got, violation.Name+": "+violation.Cause)
				}
			}
			return cmp.Diff(want, got)
		})
	}
	patch := func(patch string) {
		t.Helper()
		mustKubectl(t, controller, "", "patch", "vmi", "seen", "--type=merge", "--patch="+patch)
	}
	patch(`{"metadata":{"annotations":{"hooks.kubevirt.io/hookSidecars":"[]","prometheus.io/scrape":"true"},"labels":{"velero.io/backup-name":"nightly"}}}`)
	finds("a container beside the guest is found",
		`seen: its VirtualMachineInstance differs from it at spec.template.metadata.annotations["hooks.kubevirt.io/hookSidecars"]`)
	patch(`{"metadata":{"annotations":{"hooks.kubevirt.io/hookSidecars":null}},"spec":{"domain":{"cpu":{"sockets":2},"memory":{"guest":"128Mi"}}}}`)
	finds("another size is found", "seen: its VirtualMachineInstance differs from it at spec.template.spec.domain.cpu.sockets, spec.template.spec.domain.memory.guest")
	patch(`{"spec":{"domain":{"cpu":{"sockets":1},"memory":{"guest":"64Mi"}}}}`)
	finds("what runs as it was approved is not reported")
}
