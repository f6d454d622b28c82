package conversion_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/fixture"
	capturing "github.com/vmstencil/stencil/reconcilers/capture/conversion"
	"github.com/vmstencil/stencil/template"
)

// decode decodes YAML as the reconciler decodes objects of the API server.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	return fixture.VM(t, fixture.JSON(t, text))
}

func convert(t *testing.T, vm string, options capturing.Options) *capturing.Result {
	t.Helper()
	before := decode(t, vm)
	result, err := capturing.Convert(before, options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, vm), before); diff != "" {
		t.Errorf("the VirtualMachine was modified (-before +after):\n%s", diff)
	}
	return result
}

// compile compiles the template of a result.
func compile(t *testing.T, result *capturing.Result) *template.Compiled {
	t.Helper()
	compiled, err := template.Compile(&v1beta1.VirtualMachineTemplate{Spec: result.Spec})
	if err != nil {
		t.Fatalf("the template does not compile: %v\n%s", err, result.Spec.VirtualMachine.Raw)
	}
	if unused := compiled.Unused(); len(unused) > 0 {
		t.Errorf("nothing refers to the parameters %v", unused)
	}
	return compiled
}

// render renders a template with values.
func render(t *testing.T, result *capturing.Result, values map[string]string) map[string]any {
	t.Helper()
	return fixture.VM(t, fixture.Render(t, compile(t, result), values).JSON())
}

const everything = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-1
  namespace: shop
  uid: 7c8f
  resourceVersion: "12"
  generation: 3
  creationTimestamp: "2026-11-22T00:00:00Z"
  finalizers: [kubevirt.io/virtualMachineControllerFinalize]
  ownerReferences: [{apiVersion: v1, kind: X, name: y, uid: z}]
  labels:
    app: web
    kubevirt.io/vm: web-1
    vm.kubevirt.io/template: fedora
    argocd.argoproj.io/instance: shop
  annotations:
    note: costs ${5}
    template.kubevirt.io/template-ref: golden/fedora
    parameter.template.kubevirt.io/NAME: web-1
    template.kubevirt.io/rendered: "{}"
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    kubemacpool.io/transaction-timestamp: "1"
spec:
  running: true
  instancetype: {kind: VirtualMachineClusterInstancetype, name: u1.medium, revisionName: web-1-u1.medium-1}
  preference: {name: fedora, revisionName: web-1-fedora-1}
  dataVolumeTemplates:
  - metadata: {name: web-1-root}
    spec: {storage: {resources: {requests: {storage: 10Gi}}}, source: {registry: {url: "docker://quay.io/fedora"}}}
  template:
    metadata:
      creationTimestamp: null
      labels: {kubevirt.io/vm: web-1, kubevirt.io/domain: other}
      annotations: {kubevirt.io/pci-topology-version: v3}
    spec:
      hostname: web-1
      domain:
        machine: {type: pc-q35-rhel9.6.0}
        chassis: {serial: C1, asset: A1, sku: S1}
        firmware: {uuid: 11111111-2222-3333-4444-555555555555, serial: F1}
        devices:
          disks:
          - {name: root, serial: D1, disk: {bus: virtio}}
          - {name: data, disk: {bus: virtio}}
          - {name: init, disk: {bus: virtio}}
          interfaces:
          - {name: default, macAddress: "02:00:00:00:00:01", masquerade: {}}
          - {name: lan, macAddress: "02:00:00:00:00:02", bridge: {}}
      networks:
      - {name: default, pod: {}}
      - {name: lan, multus: {networkName: net/lan}}
      volumes:
      - {name: root, dataVolume: {name: web-1-root}}
      - {name: data, persistentVolumeClaim: {claimName: stuff, hotpluggable: true}}
      - name: init
        cloudInitNoCloud:
          userData: |
            #cloud-config
            ssh_authorized_keys: [ssh-ed25519 AAAA ada]
            runcmd: ["echo ${HOME} $${X} ${{Y}}"]
status: {ready: true}
`

func disks() []capturing.Disk {
	return []capturing.Disk{
		{Volume: "root", DataVolume: "web-root-1", Storage: capturing.Storage{Size: "10Gi", Class: "fast", VolumeMode: "Block", AccessModes: []string{"ReadWriteOnce"}}},
		{Volume: "data", DataVolume: "web-data-1", Storage: capturing.Storage{Size: "1Gi", Class: "slow"}},
	}
}

// TestARenderedCaptureIsTheMachine checks everything that capture changes, and that nothing else changes.
func TestARenderedCaptureIsTheMachine(t *testing.T) {
	result := convert(t, everything, capturing.Options{
		Namespace: "golden", Disks: disks(), Spec: v1beta1.VirtualMachineTemplateRequestSpec{RunStrategy: v1beta1.CaptureRunStrategyHalted},
	})
	want := decode(t, `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-2
  labels: {app: web, kubevirt.io/vm: web-2}
  annotations: {note: "costs ${5}"}
spec:
  runStrategy: Halted
  instancetype: {kind: VirtualMachineClusterInstancetype, name: u1.medium}
  preference: {name: fedora}
  dataVolumeTemplates:
  - metadata: {name: root-web-2}
    spec:
      source: {pvc: {namespace: golden, name: web-root-1}}
      storage: {resources: {requests: {storage: 10Gi}}, storageClassName: fast, volumeMode: Block, accessModes: [ReadWriteOnce]}
  - metadata: {name: data-web-2}
    spec:
      source: {pvc: {namespace: golden, name: web-data-1}}
      storage: {resources: {requests: {storage: 1Gi}}, storageClassName: slow}
  template:
    metadata:
      labels: {kubevirt.io/vm: web-2, kubevirt.io/domain: other}
    spec:
      domain:
        machine: {type: pc-q35-rhel9.6.0}
        chassis: {sku: S1}
        devices:
          disks:
          - {name: root, disk: {bus: virtio}}
          - {name: data, disk: {bus: virtio}}
          - {name: init, disk: {bus: virtio}}
          interfaces:
          - {name: default, masquerade: {}}
          - {name: lan, bridge: {}}
      networks:
      - {name: default, pod: {}}
      - {name: lan, multus: {networkName: net/lan}}
      volumes:
      - {name: root, dataVolume: {name: root-web-2}}
      - {name: data, dataVolume: {name: data-web-2, hotpluggable: true}}
      - name: init
        cloudInitNoCloud:
          userData: |
            #cloud-config
            ssh_authorized_keys: [ssh-ed25519 AAAA ada]
            runcmd: ["echo ${HOME} $${X} ${{Y}}"]
`)
	if diff := cmp.Diff(want, render(t, result, map[string]string{"NAME": "web-2"})); diff != "" {
		t.Errorf("rendered (-want +got):\n%s", diff)
	}
	if len(result.Left) > 0 || len(result.Secrets) > 0 || len(result.Unsearched) > 0 {
		t.Errorf("left %v, secrets %v, unsearched %v; want none", result.Left, result.Secrets, result.Unsearched)
	}
	if generated := render(t, result, nil)["metadata"].(map[string]any)["name"].(string); len(generated) != len("vm-xxxxx") || !strings.HasPrefix(generated, "vm-") {
		t.Errorf("the generated name is %q", generated)
	}
}

func TestWhatTheRequestAsksFor(t *testing.T) {
	result := convert(t, everything, capturing.Options{Namespace: "golden", Disks: disks(), Spec: v1beta1.VirtualMachineTemplateRequestSpec{
		RunStrategy: v1beta1.CaptureRunStrategyKeep, Instancetype: v1beta1.CaptureInstancetypeKeep,
		Parameterize: []v1beta1.CaptureParameter{"NAME", "INSTANCETYPE", "PREFERENCE", "STORAGE_CLASS", "NETWORK", "SSH_KEY"},
	}})
	var names []string
	for _, p := range result.Spec.Parameters {
		names = append(names, p.Name+"="+p.Value)
	}
	if diff := cmp.Diff([]string{
		"NAME=", "INSTANCETYPE=u1.medium", "PREFERENCE=fedora", "STORAGE_CLASS=fast", "SSH_KEY=ssh-ed25519 AAAA ada", "NETWORK=net/lan", "DOLLAR=$",
	}, names); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	got := render(t, result, map[string]string{
		"NAME": "a", "INSTANCETYPE": "u1.large", "PREFERENCE": "windows", "STORAGE_CLASS": "bulk", "NETWORK": "dmz", "SSH_KEY": "ssh-rsa B: #b",
	})
	spec := got["spec"].(map[string]any)
	if spec["running"] != true || spec["runStrategy"] != nil {
		t.Errorf("running is %v and runStrategy %v", spec["running"], spec["runStrategy"])
	}
	encoded, _ := json.Marshal(spec)
	for _, want := range []string{
		`"name":"u1.large"`, `"name":"windows"`, `"storageClassName":"bulk"`, `"storageClassName":"slow"`, `"networkName":"dmz"`, `ssh-rsa B: #b`,
		`echo ${HOME} $${X} ${{Y}}`,
	} {
		if !strings.Contains(string(encoded), want) {
			t.Errorf("rendered lacks %s:\n%s", want, encoded)
		}
	}
	// With the default values it is the captured VM.
	keys := userData(t, render(t, result, map[string]string{"NAME": "a"}))["ssh_authorized_keys"]
	if diff := cmp.Diff([]any{"ssh-ed25519 AAAA ada"}, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// userData decodes the user data of the last volume.
func userData(t *testing.T, vm map[string]any) map[string]any {
	t.Helper()
	volumes := vm["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)
	source := volumes[len(volumes)-1].(map[string]any)["cloudInitNoCloud"].(map[string]any)
	text, _ := source["userData"].(string)
	if source["userDataBase64"] != nil && text != "" {
		t.Error("user data stands there twice")
	}
	if !strings.HasPrefix(text, "#cloud-config\n") {
		t.Fatalf("no cloud-config: %q", text)
	}
	var document map[string]any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return document
}

func TestWhatStaysBehind(t *testing.T) {
	vm := func(spec string) string {
		return "metadata: {name: a, namespace: shop}\nspec: {template: {spec: " + spec + "}}"
	}
	for name, tc := range map[string]struct {
		vm        string
		namespace string
		want      []capturing.Left
	}{
		"a disk of which no snapshot was taken": {
			vm: vm(`{domain: {devices: {}}, volumes: [{name: d, dataVolume: {name: x}}, {name: p, persistentVolumeClaim: {claimName: y1}}]}`), namespace: "shop",
			want: []capturing.Left{
				{What: "spec.template.spec.volumes[0]: the disk d is not copied, because no snapshot was taken of it; the template refers to DataVolume x of the source", Unreachable: true},
				{What: "spec.template.spec.volumes[1]: the disk p is not copied, because no snapshot was taken of it; the template refers to PersistentVolumeClaim y1 of the source", Unreachable: true},
			},
		},
		"what is referred to, from another namespace": {
			vm: vm(`{domain: {devices: {}, firmware: {kernelBoot: {container: {image: k, imagePullSecret: kernels}}}},
				resourceClaims: [{name: gpu, resourceClaimName: card}, {name: nic, resourceClaimTemplateName: ports}], accessCredentials: [{sshPublicKey: {source: {secret: {secretName: keys}}, propagationMethod: {noCloud: {}}}}],
				networks: [{name: n1, multus: {networkName: lan}}],
				volumes: [{name: s, secret: {secretName: s1}}, {name: c, configMap: {name: c1}}, {name: a, serviceAccount: {serviceAccountName: sa}},
				{name: e, ephemeral: {persistentVolumeClaim: {claimName: base}}}, {name: w, sysprep: {secret: {name: answers}}},
				{name: i, cloudInitNoCloud: {secretRef: {name: u}, networkDataSecretRef: {name: n1}}}, {name: cd, containerDisk: {image: x, imagePullSecret: pull}}]}`), namespace: "golden",
			want: []capturing.Left{
				{What: "spec.template.spec.volumes[0].secret: Secret s1 stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.volumes[1].configMap: ConfigMap c1 stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.volumes[2].serviceAccount: ServiceAccount sa stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.volumes[3].ephemeral: PersistentVolumeClaim base stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.volumes[4].sysprep.secret: Secret answers stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.volumes[5].cloudInitNoCloud.secretRef: Secret u stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.volumes[5].cloudInitNoCloud.networkDataSecretRef: Secret n1 stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.volumes[6].containerDisk.imagePullSecret: Secret pull stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.domain.firmware.kernelBoot.container.imagePullSecret: Secret kernels stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.resourceClaims[0].resourceClaimName: ResourceClaim card stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.resourceClaims[1].resourceClaimTemplateName: ResourceClaimTemplate ports stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.accessCredentials[0].sshPublicKey: Secret keys stays in namespace shop", Unreachable: true},
				{What: "spec.template.spec.networks[0].multus.networkName: NetworkAttachmentDefinition lan stays in namespace shop", Unreachable: true},
			},
		},
		"what is referred to, in the same namespace": {
			vm: vm(`{domain: {devices: {}}, volumes: [{name: s, secret: {secretName: s1}}]}`), namespace: "shop",
			want: []capturing.Left{{What: "spec.template.spec.volumes[0].secret: Secret s1 stays in namespace shop, and VirtualMachines of other namespaces need one of that name"}},
		},
		"instance types and preferences of the namespace, however their kinds are written": {
			vm: "metadata: {name: a, namespace: shop}\nspec: {instancetype: {kind: virtualmachineinstancetypes, name: small}, preference: {kind: VirtualMachinePreference, name: fedora}, template: {spec: {domain: {devices: {}}}}}", namespace: "golden",
			want: []capturing.Left{
				{What: "spec.instancetype: VirtualMachineInstancetype small stays in namespace shop", Unreachable: true},
				{What: "spec.preference: VirtualMachinePreference fedora stays in namespace shop", Unreachable: true},
			},
		},
		"state that is kept beside the disks": {
			vm: vm(`{domain: {firmware: {bootloader: {efi: {persistent: true}}}, devices: {tpm: {persistent: true}}}}`), namespace: "golden",
			want: []capturing.Left{
				{What: "spec.template.spec.domain.firmware.bootloader.efi: the stored EFI variables stay behind; VirtualMachines of the template begin with new ones"},
				{What: "spec.template.spec.domain.devices.tpm: the state of the TPM stays behind, and what is sealed by it cannot be opened; VirtualMachines of the template begin with a new one"},
			},
		},
		"state that is not kept": {
			vm: vm(`{domain: {firmware: {bootloader: {efi: {}}}, devices: {tpm: {}}}}`), namespace: "golden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := convert(t, tc.vm, capturing.Options{Namespace: tc.namespace})
			compile(t, result)
			if diff := cmp.Diff(tc.want, result.Left); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMemoryDumpIsLeftOut(t *testing.T) {
	result := convert(t, `{metadata: {name: a}, spec: {template: {spec: {domain: {devices: {disks: [{name: root}, {name: dump}]}}, volumes: [{name: root, emptyDisk: {capacity: 1Gi}}, {name: dump, memoryDump: {claimName: d}}]}}}}`,
		capturing.Options{Namespace: "shop"})
	if text := string(result.Spec.VirtualMachine.Raw); strings.Contains(text, "dump") || !strings.Contains(text, "root") {
		t.Error(text)
	}
	if len(result.Left) > 0 {
		t.Errorf("left %v", result.Left)
	}
}

func TestSomethingElseThanAMachineIsRefused(t *testing.T) {
	for _, object := range []map[string]any{nil, {}, {"spec": map[string]any{"template": "x"}}} {
		if _, err := capturing.Convert(object, capturing.Options{}); err == nil || err.Error() != "converting the VirtualMachine: it has no spec.template.spec" {
			t.Errorf("%v: got %v", object, err)
		}
	}
}

func TestANameThatIsNotFreeIsNumbered(t *testing.T) {
	vm := `{metadata: {name: a}, spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: i, cloudInitNoCloud: {userData: "#cloud-config\nusers: [{name: a.b, plain_text_passwd: x1}, {name: a-b, plain_text_passwd: x2}]\n"}}]}}}}`
	result := convert(t, vm, capturing.Options{Spec: v1beta1.VirtualMachineTemplateRequestSpec{Secrets: v1beta1.CaptureSecretsParameterize}})
	compile(t, result)
	var names []string
	for _, p := range result.Spec.Parameters {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"NAME", "PASSWORD_A_B", "PASSWORD_A_B_2"}, names); diff != "" {
		t.Error(diff)
	}
}
