package capture_test

import (
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// script contains many strings that resemble the template's language.
const script = "#!/bin/sh\necho ${HOME} $${NAME} ${{NAME}} ${NAME}\n"

const source = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-1
  labels: {app: web}
  annotations: {note: "costs ${5}"}
spec:
  runStrategy: Always
  instancetype: {kind: VirtualMachineClusterInstancetype, name: u1.medium}
  preference: {kind: VirtualMachineClusterPreference, name: fedora}
  template:
    metadata: {labels: {kubevirt.io/vm: web-1}}
    spec:
      hostname: web-1
      domain:
        firmware: {uuid: 11111111-2222-3333-4444-555555555555, serial: secret-serial}
        devices:
          disks:
          - {name: root, serial: D1, disk: {bus: virtio}}
          - {name: init, disk: {bus: virtio}}
          - {name: tools, disk: {bus: virtio}}
          interfaces: [{name: default, macAddress: "02:00:00:00:00:01", masquerade: {}}]
      networks: [{name: default, pod: {}}]
      volumes:
      - {name: root, containerDisk: {image: quay.io/containerdisks/fedora:latest}}
      - {name: tools, cloudInitConfigDrive: {userData: SCRIPT}}
      - name: init
        cloudInitNoCloud:
          userData: |
            #cloud-config
            password: hunter2
            runcmd: ["echo ${HOME}"]
`

// TestARunningMachineBecomesATemplateAndAMachineAgain tests all steps with KubeVirt's own API server and controller.
func TestARunningMachineBecomesATemplateAndAMachineAgain(t *testing.T) {
	s := real.on(t)
	shop, golden := s.namespace(t, "shop"), s.namespace(t, "golden")
	encoded, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	// A VM may have only one cloud-init volume.
	vm := strings.Replace(source, "      - {name: tools, cloudInitConfigDrive: {userData: SCRIPT}}\n", "", 1)
	vm = strings.Replace(vm, "          - {name: tools, disk: {bus: virtio}}\n", "", 1)
	vm = strings.Replace(vm, `note: "costs ${5}"`, `note: `+string(encoded), 1)
	s.does(t, vm, "create", "-n", shop, "-f", "-")
	s.does(t, request(golden, "r", shop, "web-1", `, "templateName": "web", "templateLabels": {"os": "fedora"}, "instancetype": "Expand", "secrets": "Parameterize"`), "create", "-f", "-")
	got := s.ends(t, golden, "r")
	if got["Ready"].Status != "True" || got["Complete"].Status != "True" || got["SecretsFound"].Reason != "SecretsParameterized" {
		t.Fatalf("conditions are %+v", got)
	}
	text := s.does(t, "", "get", "vmt", "web", "-n", golden, "-o", "json")
	for _, want := range []string{`"os": "fedora"`, `"runStrategy": "Always"`, `"name": "${NAME}"`, `"sockets"`, "password: \\\"${PASSWORD}\\\""} {
		if !strings.Contains(text, want) {
			t.Errorf("the template lacks %s", want)
		}
	}
	for _, absent := range []string{"hunter2", "secret-serial", "02:00:00", `"hostname"`, `"instancetype"`, `"D1"`} {
		if strings.Contains(text, absent) {
			t.Errorf("the template has %s", absent)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	s.does(t, gen.Manifest(gen.VM("web-2", gen.InNamespace(golden), gen.FromTemplate("web"), gen.Parameter("PASSWORD", "hunter3"))), "create", "-f", "-")
	made := s.does(t, "", "get", "vm", "web-2", "-n", golden, "-o", "json")
	for _, want := range []string{`password: \"hunter3\"`, "echo ${HOME}", `"kubevirt.io/vm": "web-2"`} {
		if !strings.Contains(made, want) {
			t.Errorf("the new machine lacks %s:\n%s", want, made)
		}
	}
	s.does(t, request(golden, "hidden", shop, "web-1", `, "secrets": "Parameterize", "secretize": true`), "create", "-f", "-")
	if got := s.ends(t, golden, "hidden"); got["Ready"].Status != "True" {
		t.Fatalf("conditions are %+v", got)
	}
	s.does(t, gen.Manifest(gen.VM("web-3", gen.InNamespace(golden), gen.FromTemplate("hidden"), gen.Parameter("PASSWORD", "hunter4"))), "create", "-f", "-")
	if hidden := s.does(t, "", "get", "vm", "web-3", "-n", golden, "-o", "json"); strings.Contains(hidden, "hunter4") || !strings.Contains(hidden, `"name": "web-3-init"`) {
		t.Errorf("the user data of the new machine are not in a Secret:\n%s", hidden)
	}
	eventually(t, "the Secret of the new machine has its user data", func() string {
		if data := s.must(t, "", "get", "secrets", "-n", golden, "-o", `go-template={{range .items}}{{if eq .metadata.name "web-3-init"}}{{.data.userdata | base64decode}}{{end}}{{end}}`); !strings.Contains(data, `password: "hunter4"`) {
			return "it is " + data
		}
		return ""
	})
	var stored struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal([]byte(made), &stored); err != nil || stored.Metadata.Annotations["note"] != script {
		t.Errorf("the script is %q (%v)", stored.Metadata.Annotations["note"], err)
	}
	eventually(t, "the snapshot is gone and events tell of the capture", func() string {
		if left := s.all(t, snapshots, shop); len(left) > 0 {
			return "a snapshot is left"
		}
		for _, about := range []string{"VirtualMachineTemplateRequest", "VirtualMachine"} {
			said := s.must(t, "", "get", "events", "-A", "-o", "jsonpath={.items[?(@.involvedObject.kind=='"+about+"')].reason}")
			for _, want := range []string{"CaptureStarted", "Captured"} {
				if !strings.Contains(said, want) {
					return "no event " + want + " about the " + about + ": " + said
				}
			}
		}
		return ""
	})
}

// TestServicesAndSecretsOfAMachineAreCaptured has stencilctl read them as the owner, and creates a VM of the template in which they are.
func TestServicesAndSecretsOfAMachineAreCaptured(t *testing.T) {
	s := real.on(t)
	shop, golden := s.namespace(t, "shop"), s.namespace(t, "golden")
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.does(t, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"userdata": "#cloud-config\npassword: hunter2\n"}}`, "create", "-n", shop, "-f", "-")
	s.does(t, `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web-1-http"}, "spec": {"selector": {"app": "web"}, "type": "NodePort", "ports": [{"port": 80}]}}`, "create", "-n", shop, "-f", "-")
	s.does(t, `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "other"}, "spec": {"selector": {"app": "other"}, "ports": [{"port": 80}]}}`, "create", "-n", shop, "-f", "-")
	s.does(t, gen.Manifest(gen.VM("web-1", gen.SmallSpec(), gen.CloudInitSecret("init", "login"), gen.Spec("template: {metadata: {labels: {app: web}}}"))), "create", "-n", shop, "-f", "-")

	line := "capture " + shop + "/web-1 -n " + golden + " --name web --include Services,Secrets --wait --poll-interval 200ms"
	ran, err := stencilctl.Command{Binary: binary, Kubeconfig: s.owner.Kubeconfig, Line: line}.Run(t.Context())
	if err != nil || ran.Code != 0 {
		t.Fatalf("%+v, %v", ran, err)
	}
	if want := "spec.objects[1] (Secret login)"; !strings.Contains(ran.Problems, want) {
		t.Errorf("no condition reports the Secret: %s", ran.Problems)
	}
	s.does(t, gen.Manifest(gen.VM("web-2", gen.InNamespace(golden), gen.FromTemplate("web"))), "create", "-f", "-")
	for what, want := range map[string]string{
		"secret/web-2-login {{.data.userdata | base64decode}}":                                                      "#cloud-config\npassword: hunter2\n",
		"service/web-2-http {{.spec.selector}}":                                                                     "map[app:web vm.kubevirt.io/name:web-2]",
		"vm/web-2 {{range .spec.template.spec.volumes}}{{with .cloudInitNoCloud}}{{.secretRef.name}}{{end}}{{end}}": "web-2-login",
	} {
		object, show, _ := strings.Cut(what, " ")
		eventually(t, object+" is as the captured one", func() string {
			got := s.kubectl(t, nil, "", "get", object, "-n", golden, "-o", "go-template="+show)
			if got.Stdout != want {
				return got.Stdout + got.Stderr
			}
			return ""
		})
	}
	if names := s.must(t, "", "get", "services", "-n", golden, "-o", "name"); names != "service/web-2-http\n" {
		t.Errorf("the Services are %s", names)
	}
	// bob may capture, and may not read Secrets.
	bob := harness.User(t, s.platform.Plane, "bob-"+shop, gen.Permits(shop, rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list"}}))
	ran, err = stencilctl.Command{Binary: binary, Kubeconfig: bob.Kubeconfig, Line: line}.Run(t.Context())
	if err != nil || ran.Code == 0 || !strings.Contains(ran.Problems, `secrets "login" is forbidden`) {
		t.Errorf("%+v, %v", ran, err)
	}
}

// TestDisksAreCopiedByCDIAndForEveryMachine tests KubeVirt, CDI and storage together.
func TestDisksAreCopiedByCDIAndForEveryMachine(t *testing.T) {
	s := real.on(t)
	shop, golden := s.namespace(t, "shop"), s.namespace(t, "golden")
	s.does(t, gen.Manifest(gen.VM("web", gen.SmallSpec(), gen.Memory("1Gi"), gen.DataVolumeDisk("root", "web-root", "source: {blank: {}}"))), "create", "-n", shop, "-f", "-")
	s.reaches(t, shop, "dv/web-root", "Succeeded")
	s.does(t, request(golden, "r", shop, "web", `, "templateName": "web"`), "create", "-f", "-")
	if got := s.ends(t, golden, "r"); got["Ready"].Status != "True" || got["Complete"].Status != "True" {
		t.Fatalf("conditions are %+v", got)
	}
	if disks := s.all(t, dataVolumes, golden); len(disks) != 1 {
		t.Fatalf("there are %d DataVolumes", len(disks))
	}
	s.does(t, gen.Manifest(gen.VM("web-2", gen.InNamespace(golden), gen.FromTemplate("web"))), "create", "-f", "-")
	s.reaches(t, golden, "dv/root-web-2", "Succeeded")
	// The disks are deleted with the template, and the VMs created from it stay.
	s.does(t, "", "delete", "vmt", "web", "-n", golden)
	eventually(t, "the disks of the deleted template are gone", func() string {
		for _, each := range s.all(t, dataVolumes, golden) {
			if each.GetName() != "root-web-2" {
				return each.GetName() + " is left"
			}
		}
		if len(s.all(t, snapshots, shop)) > 0 {
			return "a snapshot is left"
		}
		return ""
	})
}

// onClaim is a VirtualMachine with a claim.
const onClaim = `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": {"runStrategy": "Halted", "template": {"spec": {
	"domain": {"memory": {"guest": "1Gi"}, "devices": {"disks": [{"name": "d", "disk": {"bus": "virtio"}}]}}, "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "stuff"}}]}}}}`

// TestADiskOfWhichKubeVirtTakesNoSnapshotIsNamed has a disk on storage without snapshots.
func TestADiskOfWhichKubeVirtTakesNoSnapshotIsNamed(t *testing.T) {
	s := real.on(t)
	shop := s.namespace(t, "shop")
	s.must(t, `{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "by-hand"}, "provisioner": "kubernetes.io/no-provisioner"}`, "create", "-f", "-")
	t.Cleanup(func() {
		s.must(t, "", "delete", "sc", "by-hand")
		s.must(t, "", "delete", "pv", "by-hand", "--wait=false")
	})
	s.must(t, `{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "by-hand"}, "spec": {"storageClassName": "by-hand", "accessModes": ["ReadWriteOnce"],
		"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/nowhere"}}}`, "create", "-f", "-")
	s.does(t, gen.Manifest(gen.Claim("stuff", gen.Spec("storageClassName: by-hand"))), "create", "-n", shop, "-f", "-")
	s.does(t, onClaim, "create", "-n", shop, "-f", "-")
	s.reaches(t, shop, "pvc/stuff", "Bound")
	s.does(t, request(shop, "r", shop, "web", ""), "create", "-f", "-")
	got := s.ends(t, shop, "r")
	if got["Ready"].Reason != "Unreachable" || got["Complete"].Status != "False" || !strings.Contains(got["Complete"].Message, "the disk d is not copied") {
		t.Errorf("conditions are %+v", got)
	}
}
