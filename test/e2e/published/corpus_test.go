package published_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// system is a guest system of the corpus.
type system struct {
	name    string
	windows bool
	// secure means EFI with secure boot and a TPM.
	secure bool
	user   string
}

var systems = []system{
	{name: "fedora", user: "fedora"}, {name: "rhel8", user: "cloud-user"}, {name: "rhel9", user: "cloud-user"}, {name: "rhel10", user: "cloud-user"},
	{name: "centos-stream9", user: "centos"}, {name: "centos-stream10", user: "centos"}, {name: "ubuntu", user: "ubuntu"}, {name: "opensuse", user: "opensuse"},
	{name: "windows10", windows: true}, {name: "windows11", windows: true, secure: true}, {name: "windows2k19", windows: true},
	{name: "windows2k22", windows: true}, {name: "windows2k25", windows: true, secure: true},
}

// flavors are sizes: processors and memory.
var flavors = map[string]struct {
	cores  int
	memory string
}{"tiny": {1, "1.5Gi"}, "small": {1, "2Gi"}, "medium": {1, "4Gi"}, "large": {2, "8Gi"}}

// commonTemplate returns an OpenShift Template of the kind that KubeVirt's common-templates are: one for each system, workload, size and architecture.
func commonTemplate(s system, workload, flavor, architecture string) map[string]any {
	size := flavors[flavor]
	features, devices := `acpi: {}, `, ``
	more := `terminationGracePeriodSeconds: 180, evictionStrategy: LiveMigrate, `
	clock, firmware := ``, ``
	bus, model := "virtio", "virtio"
	volumes := `, {name: cloudinitdisk, cloudInitNoCloud: {userData: "#cloud-config\nuser: ` + s.user + `\npassword: ${CLOUD_USER_PASSWORD}\nchpasswd: { expire: False }\nruncmd: [\"echo ${HOME} $$\"]"}}`
	disks := `, {name: cloudinitdisk, disk: {bus: virtio}}`
	if s.windows {
		bus, model, volumes, disks = "sata", "e1000e", "", ""
		features += `apic: {}, hyperv: {relaxed: {}, vapic: {}, spinlocks: {spinlocks: 8191}, vpindex: {}, runtime: {}, synic: {}, synictimer: {direct: {}}, frequencies: {}, tlbflush: {}, ipi: {}, reset: {}, reenlightenment: {}}, `
		clock = `clock: {utc: {}, timer: {hpet: {present: false}, pit: {tickPolicy: delay}, rtc: {tickPolicy: catchup}, hyperv: {}}}, `
		devices += `inputs: [{type: tablet, bus: usb, name: tablet}], `
		more = `terminationGracePeriodSeconds: 3600, evictionStrategy: LiveMigrate, `
	}
	if s.secure {
		features += `smm: {enabled: true}, `
		firmware = `firmware: {bootloader: {efi: {secureBoot: true}}}, `
		devices += `tpm: {persistent: true}, `
	}
	if architecture == "s390x" {
		features = ``
	}
	if workload == "highperformance" {
		devices += `networkInterfaceMultiqueue: true, `
	}
	if workload == "desktop" && !s.windows {
		devices += `sound: {name: sound, model: ich9}, inputs: [{type: tablet, bus: virtio, name: tablet}], `
	}
	parameters := `{name: NAME, description: VM name, generate: expression, from: "` + s.name + `-[a-z0-9]{16}"}, {name: DATA_SOURCE_NAME, value: ` + s.name + `}, {name: DATA_SOURCE_NAMESPACE, value: kubevirt-os-images}`
	if !s.windows {
		parameters += `, {name: CLOUD_USER_PASSWORD, generate: expression, from: "[a-z0-9]{4}-[a-z0-9]{4}-[a-z0-9]{4}"}`
	}
	name := strings.Join([]string{s.name, workload, flavor, architecture}, "-")
	text := fmt.Sprintf(`{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: %[1]q, annotations: {
		openshift.io/display-name: %[1]q, tags: "kubevirt,virtualmachine", template.kubevirt.io/version: v1alpha1,
		validations: '[{"name": "minimal-required-memory", "path": "jsonpath::.spec.domain.memory.guest", "rule": "integer", "message": "more memory", "min": 1073741824}]'},
		labels: {os.template.kubevirt.io/%[2]s: "true", workload.template.kubevirt.io/%[3]s: "true", flavor.template.kubevirt.io/%[4]s: "true", template.kubevirt.io/type: base}},
		objects: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: "${NAME}", labels: {app: "${NAME}", vm.kubevirt.io/template: %[1]q, vm.kubevirt.io/template.revision: "1"}, annotations: {vm.kubevirt.io/validations: '[{"name": "cores", "path": "jsonpath::.spec.domain.cpu.cores", "rule": "integer", "message": "one core", "min": 1}]'}},
			spec: {runStrategy: Halted,
				dataVolumeTemplates: [{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: "${NAME}"}, spec: {storage: {resources: {requests: {storage: 30Gi}}}, sourceRef: {kind: DataSource, name: "${DATA_SOURCE_NAME}", namespace: "${DATA_SOURCE_NAMESPACE}"}}}],
				template: {metadata: {annotations: {vm.kubevirt.io/os: %[2]q, vm.kubevirt.io/workload: %[3]q, vm.kubevirt.io/flavor: %[4]q}, labels: {kubevirt.io/domain: "${NAME}", kubevirt.io/size: %[4]q}},
					spec: {architecture: %[5]q, %[6]s domain: {%[7]s %[8]s features: {%[9]s}, cpu: {sockets: 1, cores: %[10]d, threads: 1}, memory: {guest: %[11]s},
						devices: {%[12]s rng: {}, disks: [{name: rootdisk, disk: {bus: %[13]s}}%[14]s], interfaces: [{name: default, masquerade: {}, model: %[15]s}]}},
						networks: [{name: default, pod: {}}], volumes: [{name: rootdisk, dataVolume: {name: "${NAME}"}}%[16]s]}}}}],
		parameters: [%[17]s]}`,
		name, s.name, workload, flavor, architecture, more, clock, firmware, strings.TrimSuffix(features, ", "), size.cores, size.memory, devices, bus, disks, model, volumes, parameters)
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		panic(fmt.Sprintf("%s: %v\n%s", name, err, text))
	}
	return object
}

// corpus returns all of them, by name.
func corpus() map[string]map[string]any {
	all := map[string]map[string]any{}
	add := func(s system, workload, flavor, architecture string) {
		object := commonTemplate(s, workload, flavor, architecture)
		all[(&unstructured.Unstructured{Object: object}).GetName()] = object
	}
	for _, s := range systems {
		for flavor := range flavors {
			workloads := []string{"server", "desktop", "highperformance"}
			if s.windows {
				if flavor != "medium" && flavor != "large" {
					continue
				}
				workloads = workloads[:2]
			}
			for _, workload := range workloads {
				add(s, workload, flavor, "amd64")
			}
			if !s.windows {
				add(s, "server", flavor, "arm64")
				add(s, "server", flavor, "s390x")
			}
		}
	}
	return all
}

// stripped returns a VirtualMachine without what Stencil adds to one that virtctl makes.
func stripped(t *testing.T, text []byte) *virtv1.VirtualMachine {
	t.Helper()
	vm := &virtv1.VirtualMachine{}
	if err := yaml.Unmarshal(text, vm); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	maps.DeleteFunc(vm.Annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "template.kubevirt.io/") || strings.HasPrefix(key, "parameter.template.kubevirt.io/")
	})
	maps.DeleteFunc(vm.Labels, func(key, _ string) bool { return strings.HasPrefix(key, "vm.kubevirt.io/template") })
	vm.Namespace = ""
	return vm
}

// TestCommonTemplates converts variants of KubeVirt's common-templates, which this test writes. Each is accepted, processed, and its VirtualMachine
// admitted by virt-api; virtctl, with the engine of KubeVirt, makes the same of what was converted.
func TestCommonTemplates(t *testing.T) {
	templates := corpus()
	if len(templates) < 172 {
		t.Errorf("%d templates", len(templates))
	}
	tools, err := controlplane.Tools(t.Context(), "virtctl")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folder, space := t.TempDir(), harness.Namespace(t, stage.Plane, "corpus")
	for name, object := range templates {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".yaml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	converted, err := stencilctl.Command{Binary: binary, Arguments: []string{"convert", "-f", folder}}.Run(t.Context())
	if err != nil || converted.Code != 0 {
		t.Fatalf("%v: %s%s", err, converted.Output, converted.Problems)
	}
	must(t, converted.Output, "create", "--namespace="+space, "-f", "-")

	var machines bytes.Buffer
	processed := map[string]*virtv1.VirtualMachine{}
	for name := range templates {
		options := `{"parameters": {"NAME": "` + name + `"}}`
		if !strings.HasPrefix(name, "windows") {
			options = `{"parameters": {"NAME": "` + name + `", "CLOUD_USER_PASSWORD": "abcd"}}`
		}
		ran := call(t, "v1beta1", space, name, "process", options)
		var answer struct{ VirtualMachine json.RawMessage }
		if err := json.Unmarshal([]byte(ran.Stdout), &answer); err != nil || ran.Code != 0 {
			t.Errorf("%s: %v: %s%s", name, err, ran.Stdout, ran.Stderr)
			continue
		}
		fmt.Fprintf(&machines, "---\n%s\n", answer.VirtualMachine)
		processed[name] = stripped(t, answer.VirtualMachine)
	}
	if ran := kubectl(t, machines.String(), "create", "--namespace="+space, "--dry-run=server", "-o", "name", "-f", "-"); ran.Code != 0 || strings.Count(ran.Stdout, "virtualmachine.kubevirt.io/") != len(templates) {
		t.Errorf("exit code %d, %d VirtualMachines are admitted:\n%s", ran.Code, strings.Count(ran.Stdout, "\n"), ran.Stderr)
	}

	rendered := make(chan [2]string, len(templates))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(2)
	for _, document := range strings.Split(converted.Output, "\n---\n") {
		var template unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &template.Object); err != nil {
			t.Fatal(err)
		}
		name := template.GetName()
		group.Go(func() error {
			arguments := []string{"template", "process", "--file", "-", "-p", "NAME=" + name}
			if !strings.HasPrefix(name, "windows") {
				arguments = append(arguments, "-p", "CLOUD_USER_PASSWORD=abcd")
			}
			command := exec.CommandContext(ctx, tools["virtctl"], arguments...)
			command.Env = append(os.Environ(), "KUBECONFIG="+stage.Plane.Kubeconfig())
			command.Stdin = strings.NewReader(document)
			var problems bytes.Buffer
			command.Stderr = &problems
			output, err := command.Output()
			if err != nil {
				return fmt.Errorf("virtctl with %s: %w: %s", name, err, problems.String())
			}
			rendered <- [2]string{name, string(output)}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	close(rendered)
	if len(rendered) != len(templates) {
		t.Errorf("virtctl has rendered %d of %d", len(rendered), len(templates))
	}
	for one := range rendered {
		if diff := cmp.Diff(processed[one[0]], stripped(t, []byte(one[1]))); diff != "" {
			t.Errorf("%s (-process +virtctl):\n%s", one[0], diff)
		}
	}
}
