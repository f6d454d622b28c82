package road_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// shop is a template with something of each kind that an override can cover: a scalar, a map, a list with names, one without, a run strategy, a
// place with a sensitive value and one with a generated value.
func shop(t *testing.T) {
	t.Helper()
	template := gen.Template("shop",
		gen.Declares("SIZE", "value: '4'"),
		gen.Declares("PASSWORD", "sensitive: true", "required: true"),
		gen.Declares("TOKEN", "generate: expression", "from: '[a-z]{12}'"),
		gen.Renders("${NAME}", gen.Spec(`
runStrategy: Manual
template:
  spec:
    hostname: shop
    nodeSelector: {zone: a}
    tolerations: [{key: shop, operator: Exists}]
    domain:
      cpu: {cores: 4, threads: 1}
      memory: {guest: 1Gi}
      devices:
        disks:
        - {name: root, bootOrder: 1, disk: {bus: virtio}}
        - {name: init, disk: {bus: virtio}}
        interfaces: [{name: default, masquerade: {}}]
    networks: [{name: default, pod: {}}]
    volumes:
    - {name: root, containerDisk: {image: registry.example/shop:1}}
    - name: init
      cloudInitNoCloud: {userData: "password: ${PASSWORD}", networkData: "token: ${TOKEN}"}
`)), gen.Declares("NAME", "required: true"))
	mustKubectl(t, nil, gen.Manifest(template), "apply", "--namespace=road-golden", "-f", "-")
}

const (
	noOverrides   = ``
	someOverrides = `
runStrategy: Halted
template:
  spec:
    hostname: other
    nodeSelector: {zone: b, disk: ssd}
    tolerations: [{key: other, operator: Exists}]
    domain:
      cpu: {cores: 2}
      devices:
        disks:
        - {name: root, bootOrder: 2}
        - {name: more, disk: {bus: sata}}
        interfaces: [{name: default, model: e1000e}, {name: second, bridge: {}}]
    networks: [{name: second, multus: {networkName: storage}}]
    volumes:
    - {name: more, emptyDisk: {capacity: 1Gi}}
`
	fewOverrides = `
template:
  spec:
    domain:
      devices:
        disks:
        - {name: more, disk: {bus: sata}}
    volumes:
    - {name: more, emptyDisk: {capacity: 1Gi}}
`
)

// shopVM returns the manifest of a VM with overrides.
func shopVM(name, overrides string) string {
	modifiers := []gen.Modifier{gen.Parameter("PASSWORD", "open-sesame")}
	if overrides != "" {
		modifiers = append(modifiers, gen.Spec(overrides))
	}
	return vm(name, "road-golden/shop", modifiers...)
}

var freshNames atomic.Int32

// fresh returns the spec of a VM that is created from a manifest without more, with the generated value of another.
func fresh(t *testing.T, overrides string, like *unstructured.Unstructured) any {
	t.Helper()
	name := fmt.Sprintf("fresh-%d", freshNames.Add(1))
	discard(t, name)
	mustKubectl(t, ada, shopVM(name, overrides), "create", "-f", "-")
	waitForController(t, name)
	vm := get(t, name)
	raw, err := json.Marshal(vm.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), token(t, vm), token(t, like))
	var spec any
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// token returns the generated value of a VM.
func token(t *testing.T, vm *unstructured.Unstructured) string {
	t.Helper()
	for _, volume := range at(t, vm, "spec", "template", "spec", "volumes").([]any) {
		if text, found, _ := unstructured.NestedString(volume.(map[string]any), "cloudInitNoCloud", "networkData"); found {
			return text
		}
	}
	t.Fatalf("no generated value in %v", vm.Object["spec"])
	return ""
}

// wantFresh fails unless a VM has the spec of a new one from the same manifest.
func wantFresh(t *testing.T, when, name, overrides string) {
	t.Helper()
	vm := get(t, name)
	want, err := json.Marshal(fresh(t, overrides, vm))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(vm.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var wanted, found any
	if err := json.Unmarshal(want, &wanted); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &found); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(identity(wanted), identity(found)); diff != "" {
		t.Errorf("%s: a fresh rendering (-) and the VM (+) differ:\n%s", when, diff)
	}
	if overrides == noOverrides {
		if note := vm.GetAnnotations()["template.kubevirt.io/overrides"]; note != "" {
			t.Errorf("%s: a VM without overrides has the annotation %s", when, note)
		}
	}
	raw, err := json.Marshal(vm.Object["metadata"])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "open-sesame") || strings.Contains(string(raw), token(t, vm)) {
		t.Errorf("%s: the metadata contains a secret: %s", when, raw)
	}
}

// identity removes what KubeVirt chooses at random for each VM.
func identity(spec any) any {
	firmware := lookup(spec, "template", "spec", "domain", "firmware")
	delete(firmware, "uuid")
	delete(firmware, "serial")
	return spec
}

func lookup(in any, path ...string) map[string]any {
	m, _ := in.(map[string]any)
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// TestARemovedOverrideIsTheTemplatesAgain goes through manifests with more and fewer overrides, with each client.
func TestARemovedOverrideIsTheTemplatesAgain(t *testing.T) {
	shop(t)
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "vmt", "shop", "--namespace=road-golden", "--ignore-not-found")
	})
	steps := []struct{ name, overrides string }{
		{"without overrides", noOverrides}, {"with overrides", someOverrides}, {"with fewer", fewOverrides}, {"without them again", noOverrides},
		{"with overrides again", someOverrides}, {"without them at last", noOverrides},
	}
	for _, client := range []struct {
		name string
		send func(t *testing.T, name, manifest string)
	}{
		{"client-side apply", func(t *testing.T, _, manifest string) {
			t.Helper()
			mustKubectl(t, ada, manifest, "apply", "-f", "-")
		}},
		{"server-side apply", func(t *testing.T, _, manifest string) {
			t.Helper()
			mustKubectl(t, ada, manifest, "apply", "--server-side", "-f", "-")
		}},
		{"replace", func(t *testing.T, name, manifest string) {
			t.Helper()
			if kubectl(t, ada, "", "get", "vm", name).Code != 0 {
				mustKubectl(t, ada, manifest, "create", "-f", "-")
				return
			}
			mustKubectl(t, ada, manifest, "replace", "-f", "-")
		}},
	} {
		t.Run(client.name, func(t *testing.T) {
			name := "shop-" + strings.ReplaceAll(client.name, " ", "-")
			discard(t, name)
			for _, step := range steps {
				if client.name == "replace" && strings.Contains(step.overrides, "template:") {
					// kubectl replace takes a manifest with spec.template for the whole VM.
					continue
				}
				client.send(t, name, shopVM(name, step.overrides))
				waitForController(t, name)
				wantFresh(t, step.name, name, step.overrides)
				before := get(t, name).GetGeneration()
				client.send(t, name, shopVM(name, step.overrides))
				if after := get(t, name).GetGeneration(); after != before {
					t.Errorf("%s: the same manifest again changed generation %d to %d", step.name, before, after)
				}
			}
		})
	}
	t.Run("server-side apply takes over from client-side apply", func(t *testing.T) {
		discard(t, "shop-taken")
		mustKubectl(t, ada, shopVM("shop-taken", someOverrides), "apply", "-f", "-")
		mustKubectl(t, ada, shopVM("shop-taken", someOverrides), "apply", "--server-side", "-f", "-")
		mustKubectl(t, ada, shopVM("shop-taken", noOverrides), "apply", "--server-side", "-f", "-")
		waitForController(t, "shop-taken")
		wantFresh(t, "without overrides", "shop-taken", noOverrides)
	})
	t.Run("another applier", func(t *testing.T) {
		discard(t, "shop-two")
		mustKubectl(t, ada, shopVM("shop-two", noOverrides), "apply", "--server-side", "-f", "-")
		mustKubectl(t, ada, shopVM("shop-two", someOverrides), "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-")
		waitForController(t, "shop-two")
		wantFresh(t, "with overrides", "shop-two", someOverrides)
		mustKubectl(t, ada, shopVM("shop-two", noOverrides), "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-")
		waitForController(t, "shop-two")
		wantFresh(t, "without overrides", "shop-two", noOverrides)
	})
	t.Run("helm upgrade and rollback", func(t *testing.T) {
		discard(t, "shop-helm")
		chart := t.TempDir()
		write := func(overrides string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(chart, "templates"), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string]string{"Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n", "templates/vm.yaml": shopVM("shop-helm", overrides)} {
				if err := os.WriteFile(filepath.Join(chart, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		helm := func(arguments ...string) {
			t.Helper()
			ran, err := stencil.Plane.Helm(t.Context(), append(arguments, "--namespace="+namespaces.Of(t))...)
			if err != nil || ran.Code != 0 {
				t.Fatal(err, ran.Stderr)
			}
			waitForController(t, "shop-helm")
		}
		write(noOverrides)
		helm("install", "shop", chart)
		wantFresh(t, "installed", "shop-helm", noOverrides)
		write(someOverrides)
		helm("upgrade", "shop", chart)
		wantFresh(t, "upgraded", "shop-helm", someOverrides)
		helm("rollback", "shop", "1")
		wantFresh(t, "rolled back", "shop-helm", noOverrides)
	})
	t.Run("kubectl edit and patch", func(t *testing.T) {
		discard(t, "shop-edited")
		mustKubectl(t, ada, shopVM("shop-edited", noOverrides), "create", "-f", "-")
		waitForController(t, "shop-edited")
		patch := func(text string) controlplane.Result {
			t.Helper()
			return mustKubectl(t, ada, "", "patch", "vm", "shop-edited", "--type=merge", "--patch", text)
		}
		patch(`{"spec":{"runStrategy":"Halted"}}`)
		patch(`{"spec":{"template":{"spec":{"hostname":"other","nodeSelector":{"zone":"b"},"domain":{"cpu":{"cores":2}}}}}}`)
		want := `{"spec.template.spec.domain.cpu.cores":{"value":4},"spec.template.spec.hostname":{"value":"shop"},"spec.template.spec.nodeSelector.zone":{"value":"a"}}`
		if got := get(t, "shop-edited").GetAnnotations()["template.kubevirt.io/overrides"]; got != want {
			t.Errorf("the annotation is %s, want %s", got, want)
		}
		patch(`{"spec":{"runStrategy":null,"template":{"spec":{"hostname":null,"nodeSelector":null,"domain":{"cpu":{"cores":null}}}}}}`)
		waitForController(t, "shop-edited")
		wantFresh(t, "removed", "shop-edited", noOverrides)
		// What the template has can be removed.
		patch(`{"spec":{"template":{"spec":{"hostname":null}}}}`)
		if got, found := lookup(get(t, "shop-edited").Object, "spec", "template", "spec")["hostname"]; found {
			t.Errorf("the hostname is %v", got)
		}
	})
	t.Run("started and stopped in between", func(t *testing.T) {
		discard(t, "shop-run")
		mustKubectl(t, ada, shopVM("shop-run", noOverrides), "apply", "-f", "-")
		mustKubectl(t, ada, "", "patch", "vm", "shop-run", "--type=merge", "--patch", `{"spec":{"runStrategy":"Halted"}}`)
		mustKubectl(t, ada, shopVM("shop-run", someOverrides), "apply", "-f", "-")
		mustKubectl(t, ada, shopVM("shop-run", noOverrides), "apply", "-f", "-")
		waitForController(t, "shop-run")
		wantFresh(t, "reverted", "shop-run", noOverrides)
	})
	t.Run("a template that changed or is gone", func(t *testing.T) {
		discard(t, "shop-late")
		mustKubectl(t, ada, shopVM("shop-late", someOverrides), "apply", "-f", "-")
		waitForController(t, "shop-late")
		mustKubectl(t, nil, "", "patch", "vmt", "shop", "--namespace=road-golden", "--type=json", "--patch", `[{"op":"replace","path":"/spec/virtualMachine/spec/template/spec/hostname","value":"new"}]`)
		mustKubectl(t, ada, shopVM("shop-late", noOverrides), "apply", "-f", "-")
		if got := at(t, get(t, "shop-late"), "spec", "template", "spec", "hostname"); got != "shop" {
			t.Errorf("the hostname is %v, not that of the template at the creation of the VM", got)
		}
		shop(t)
	})
}

// TestAnOverrideOfASecretIsRemovedWhereItsValueIsKnown covers places with a sensitive and a generated value.
func TestAnOverrideOfASecretIsRemovedWhereItsValueIsKnown(t *testing.T) {
	shop(t)
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "vmt", "shop", "--namespace=road-golden", "--ignore-not-found")
	})
	for _, tc := range []struct {
		name, overrides, place, why string
	}{
		{
			"a sensitive value", "template:\n  spec:\n    volumes:\n    - {name: init, cloudInitNoCloud: {userData: mine}}\n",
			"spec.template.spec.volumes[name=init].cloudInitNoCloud.userData", "it contains a sensitive or a generated value",
		},
		{
			"a generated value", "template:\n  spec:\n    volumes:\n    - {name: init, cloudInitNoCloud: {networkData: mine}}\n",
			"spec.template.spec.volumes[name=init].cloudInitNoCloud.networkData", "it contains a sensitive or a generated value",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			discard(t, "shop-secret")
			mustKubectl(t, ada, shopVM("shop-secret", noOverrides), "apply", "-f", "-")
			mustKubectl(t, ada, shopVM("shop-secret", tc.overrides), "apply", "-f", "-")
			before := get(t, "shop-secret")
			if want := `{"` + tc.place + `":{"hidden":"Secret"}}`; before.GetAnnotations()["template.kubevirt.io/overrides"] != want {
				t.Errorf("the annotation is %s, want %s", before.GetAnnotations()["template.kubevirt.io/overrides"], want)
			}
			refused := kubectl(t, ada, shopVM("shop-secret", noOverrides), "apply", "-f", "-")
			want := tc.place + ": Forbidden: this override cannot be removed: the value of template road-golden/shop is not stored with the VirtualMachine, because " +
				tc.why + "; keep the field, or set it to the value that you want"
			if refused.Code == 0 || !strings.Contains(refused.Stderr, want) {
				t.Errorf("exit code %d: %s", refused.Code, refused.Stderr)
			}
			if diff := cmp.Diff(before.Object["spec"], get(t, "shop-secret").Object["spec"]); diff != "" {
				t.Errorf("the spec changed:\n%s", diff)
			}
			// Another removal goes on.
			mustKubectl(t, ada, "", "patch", "vm", "shop-secret", "--type=merge", "--patch", `{"spec":{"template":{"spec":{"hostname":null}}}}`)
		})
	}
	t.Run("where the VM shows it", func(t *testing.T) {
		mustKubectl(t, nil, "", "patch", "vmt", "shop", "--namespace=road-golden", "--type=json", "--patch", `[{"op":"replace","path":"/spec/virtualMachine/spec/template/spec/hostname","value":"${TOKEN}"}]`)
		discard(t, "shop-shown")
		mustKubectl(t, ada, shopVM("shop-shown", noOverrides), "apply", "-f", "-")
		want := at(t, get(t, "shop-shown"), "spec", "template", "spec", "hostname")
		mustKubectl(t, ada, shopVM("shop-shown", "template:\n  spec:\n    hostname: mine\n"), "apply", "-f", "-")
		mustKubectl(t, ada, shopVM("shop-shown", noOverrides), "apply", "-f", "-")
		if got := lookup(get(t, "shop-shown").Object, "spec", "template", "spec")["hostname"]; got != want {
			t.Errorf("the hostname is %v, want %v; annotations %v", got, want, get(t, "shop-shown").GetAnnotations())
		}
		mustKubectl(t, ada, shopVM("shop-shown", "template:\n  spec:\n    hostname: mine\n"), "apply", "-f", "-")
		mustKubectl(t, nil, "", "delete", "vmt", "shop", "--namespace=road-golden")
		harness.Eventually(t, "the manager knows that the template is gone", func() error {
			refused := kubectl(t, ada, shopVM("shop-shown", noOverrides), "apply", "--dry-run=server", "-f", "-")
			if !strings.Contains(refused.Stderr, "it contains a sensitive or a generated value, and the template has changed since, is gone, or you may not use it") {
				return errNotSynced(refused.Stdout + refused.Stderr)
			}
			return nil
		})
	})
}

// TestAMachineFromBeforeADefaultCanBeUpdated updates VirtualMachines of a governed namespace which were stored before KubeVirt wrote a machine type into
// every one: KubeVirt adds it to the update, and the user has not.
func TestAMachineFromBeforeADefaultCanBeUpdated(t *testing.T) {
	namespace := namespaces.Of(t)
	for _, name := range []string{"older", "oldest"} {
		discard(t, name)
	}
	mustKubectl(t, ada, vm("older", "golden/fedora"), "create", "-f", "-")
	mustKubectl(t, ada, "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: oldest}\nspec: {runStrategy: Halted, template: {spec: {domain: {memory: {guest: 1Gi}, devices: {}}}}}\n", "create", "-f", "-")
	mustKubectl(t, nil, gen.Manifest(gen.Approval(namespace, gen.Governs(namespace), gen.Approves("golden/fedora"), gen.Spec("{overrides: [spec.runStrategy, metadata.labels]}"))), "create", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, nil, "", "delete", "templateapproval", namespace) })
	mustKubectl(t, nil, "", "wait", "--for=condition=Active", "templateapproval/"+namespace, "--timeout=60s")
	for _, name := range []string{"older", "oldest"} {
		waitForController(t, name)
		withoutMachineType(t, namespace, name)
	}

	const machineType = "spec.template.spec.domain.machine.type"
	for name, tc := range map[string]struct {
		patch, want string
	}{
		"a user who sets it, too":       {`{"metadata":{"labels":{"tier":"a"}},"spec":{"template":{"spec":{"domain":{"machine":{"type":"q35"}}}}}}`, machineType},
		"a user who sets another value": {`{"spec":{"template":{"spec":{"domain":{"machine":{"type":"pc-q35-rhel8.6.0"}}}}}}`, machineType},
		"another field":                 {`{"spec":{"template":{"spec":{"hostname":"mine"}}}}`, "spec.template.spec.hostname"},
	} {
		refused := kubectl(t, ada, "", "patch", "vm", "older", "--namespace="+namespace, "--type=merge", "--patch", tc.patch)
		if refused.Code == 0 || !strings.Contains(refused.Stderr, tc.want) {
			t.Errorf("%s: exit code %d: %s\nwant %s", name, refused.Code, refused.Stderr, tc.want)
		}
	}
	// A client cannot disown its fields by the managed fields that it sends.
	const forged = `[{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"x","operation":"Update","apiVersion":"kubevirt.io/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:runStrategy":{}}}}]},` +
		`{"op":"add","path":"/spec/template/spec/domain/machine","value":{"type":"pc-q35-rhel8.6.0"}}]`
	reset := strings.Replace(forged, forged[strings.Index(forged, `[{"manager"`):strings.Index(forged, `},{"op":"add"`)], "[{}]", 1)
	for _, patch := range []string{forged, reset} {
		for name, want := range map[string]string{"older": machineType, "oldest": "the VirtualMachine names no template"} {
			refused := kubectl(t, ada, "", "patch", "vm", name, "--namespace="+namespace, "--type=json", "--patch", patch)
			if refused.Code == 0 || !strings.Contains(refused.Stderr, want) {
				t.Errorf("%s: exit code %d: %s\nwant %s", name, refused.Code, refused.Stderr, want)
			}
		}
	}
	mustKubectl(t, ada, "", "label", "vm", "older", "tier=a")
	mustKubectl(t, ada, "", "annotate", "vm", "oldest", "note=a")
	for _, name := range []string{"older", "oldest"} {
		if got := at(t, get(t, name), strings.Split(machineType, ".")...); got != "q35" {
			t.Errorf("%s has the machine type %v", name, got)
		}
	}
}

// withoutMachineType stores a VirtualMachine as a KubeVirt has done that did not write machine types.
func withoutMachineType(t *testing.T, namespace, name string) {
	t.Helper()
	key := "/registry/kubevirt.io/virtualmachines/" + namespace + "/" + name
	for {
		stored, err := stencil.Plane.Stored(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		vm := &unstructured.Unstructured{}
		if err := json.Unmarshal(stored[key], &vm.Object); err != nil {
			t.Fatalf("etcd has %q at %s: %v", stored[key], key, err)
		}
		domain, _, _ := unstructured.NestedMap(vm.Object, "spec", "template", "spec", "domain")
		if domain["machine"] == nil {
			break
		}
		unstructured.RemoveNestedField(vm.Object, "spec", "template", "spec", "domain", "machine")
		raw, err := json.Marshal(vm.Object)
		if err != nil {
			t.Fatal(err)
		}
		if err := stencil.Plane.Store(t.Context(), key, raw); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, name+" has no machine type", func() error {
		if _, has, _ := unstructured.NestedMap(get(t, name).Object, "spec", "template", "spec", "domain", "machine"); has {
			return errors.New("the API server has not seen it")
		}
		return nil
	})
}
