package defaults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// defaultsIn is the path of the resource in a namespace.
func defaultsIn(namespace string) string {
	return "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/" + namespace + "/defaults"
}

// post has the defaults of a VM filled in, as a management application would with kubectl.
func post(t *testing.T, as *controlplane.User, namespace, vm string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, vm, "create", "--raw", defaultsIn(namespace), "-f", "-")
}

// filled is post for a request that succeeds.
func filled(t *testing.T, as *controlplane.User, namespace, vm string) (object *unstructured.Unstructured, warnings string) {
	t.Helper()
	out := post(t, as, namespace, vm)
	object = &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(out.Stdout)); out.Code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s%s", out.Code, err, out.Stdout, out.Stderr)
	}
	return object, out.Stderr
}

// editor returns a user with the role edit in a namespace of its own.
func editor(t *testing.T, name string) (user *controlplane.User, namespace string) {
	t.Helper()
	namespace = harness.Namespace(t, stencil.Plane, "endpoint")
	return harness.User(t, stencil.Plane, name, gen.Role(namespace, "edit")), namespace
}

// leaves returns the values of an object that have no parts, by path.
func leaves(t *testing.T, value any) map[string]string {
	t.Helper()
	found := map[string]string{}
	var walk func(value any, path string)
	walk = func(value any, path string) {
		switch v := value.(type) {
		case map[string]any:
			if len(v) > 0 {
				for key, child := range v {
					walk(child, path+"."+key)
				}
				return
			}
		case []any:
			if len(v) > 0 {
				for i, child := range v {
					walk(child, fmt.Sprintf("%s[%d]", path, i))
				}
				return
			}
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		found[path] = string(text)
	}
	walk(value, "")
	return found
}

// kubevirts are what KubeVirt's own webhook adds to a new VM: it fills in the same values as the defaulter otherwise.
var kubevirts = []string{
	".template.spec.domain.firmware.serial",
	".template.spec.domain.resources",
	".template.metadata.annotations.kubevirt.io/pci-topology-version",
}

// aliasPath is where KubeVirt's webhook writes the alias of a machine type, which the defaulter replaces unless libvirt rejects the VM.
const aliasPath = ".template.spec.domain.machine.type"

// random is the one default that differs each time.
const random = ".template.spec.domain.firmware.uuid"

// compare compares the spec of a response with that of the stored VM.
func compare(t *testing.T, got, stored *unstructured.Unstructured, more []string, apart ...string) {
	t.Helper()
	want, have := leaves(t, stored.Object["spec"]), leaves(t, got.Object["spec"])
	for _, path := range slices.Concat(kubevirts, more) {
		if have[path] == "" {
			delete(want, path)
		}
	}
	if want[random] == "" || have[random] == "" {
		t.Errorf("the UUID is %q in the response, and %q is stored", have[random], want[random])
	}
	for _, path := range apart {
		delete(want, path)
		delete(have, path)
	}
	for path, value := range want {
		if have[path] != value {
			t.Errorf("spec%s is %q in the response, and %q is stored", path, have[path], value)
		}
		delete(have, path)
	}
	for path, value := range have {
		t.Errorf("spec%s is %q in the response, and is not stored", path, value)
	}
}

// record is the annotation of a VM, without the alias: KubeVirt's webhook writes one into a VM without a machine type before the record is made.
func record(t *testing.T, vm *unstructured.Unstructured) map[string]any {
	t.Helper()
	found := map[string]any{}
	if text := vm.GetAnnotations()[contract.AnnotationDefaultsApplied]; text != "" {
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatal(err)
		}
	}
	delete(found, "alias")
	return found
}

func TestTheEndpointReturnsWhatIsStoredOnCreation(t *testing.T) {
	eve, space := editor(t, "eve")
	const preference = `
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachinePreference
metadata: {name: old}
spec: {devices: {preferredDiskBus: sata, preferredInterfaceModel: e1000}, firmware: {preferredUseEfi: true, preferredUseSecureBoot: false}}
`
	harness.Must(t, stencil.Plane, eve, preference, "--namespace="+space, "create", "-f", "-")
	var names []string
	discardAll := func() { harness.Discard(t, stencil.Plane, space, names...) }
	const plain = `{domain: {memory: {guest: 1Gi}, devices: {disks: [{name: root, disk: {}}], interfaces: [{name: default, masquerade: {}}]}},
		networks: [{name: default, pod: {}}], volumes: [{name: root, containerDisk: {image: registry.example.com/fedora}}]}`
	vm := func(name, spec string) string {
		names = append(names, name)
		return "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: " + name + "}\nspec: {runStrategy: Halted, " + spec + "}\n"
	}
	in := func(manifest string) string {
		return strings.Replace(manifest, "namespace: team-a", "namespace: "+space, 1)
	}
	for _, tc := range []struct {
		name, vm string
		// warning is in those of the response; none are if it is empty.
		warning string
		// kubevirts are further values that KubeVirt's own webhook adds.
		kubevirts []string
		unfilled  bool
	}{
		{name: "two disks and an interface", vm: in(vmWith("endpoint-disks", ""))},
		{name: "hardly anything", vm: vm("endpoint-least", "template: {spec: {domain: {devices: {}}}}")},
		{name: "CPUs by requests", vm: vm("endpoint-requests", "template: {spec: {domain: {resources: {requests: {memory: 1Gi, cpu: '3'}}, devices: {}}}}")},
		{name: "a volume without a disk", vm: vm("endpoint-volume", "template: {spec: {domain: {memory: {guest: 2Gi}, devices: {}}, volumes: [{name: seed, cloudInitNoCloud: {userData: '#cloud-config'}}]}}")},
		{name: "an instance type and a preference of the cluster", vm: vm("endpoint-sizes", "instancetype: {name: u1.medium}, preference: {name: fedora}, template: {spec: "+strings.Replace(plain, "memory: {guest: 1Gi}, ", "", 1)+"}")},
		{name: "a preference of the namespace", vm: vm("endpoint-old", "preference: {kind: VirtualMachinePreference, name: old}, template: {spec: "+plain+"}"),
			warning: "left open: "},
		{name: "a device behind a bridge", vm: vm("endpoint-bridge", "template: {spec: "+strings.Replace(plain, "masquerade: {}", "masquerade: {}, model: e1000", 1)+"}"), warning: "is behind a bridge"},
		{name: "an address that is requested", vm: in(vmWith("endpoint-requested", ", pciAddress: '0000:0a:00.0'"))},
		{name: "an architecture without an emulator", vm: vm("endpoint-foreign", "template: {spec: "+strings.Replace(plain, "{domain:", "{architecture: s390x, domain:", 1)+"}"),
			warning:   "Warning: not all defaults that the guest sees were filled in: libvirt rejects the VM: unsupported configuration: No emulator found for arch 's390x'",
			kubevirts: []string{".template.metadata", aliasPath}},
		{name: "no defaults, by annotation", vm: strings.Replace(in(vmWith("endpoint-skips", "")), "namespace:", `annotations: {defaults.template.kubevirt.io/skip: "true"}, namespace:`, 1), unfilled: true,
			warning: "Warning: annotation defaults.template.kubevirt.io/skip excludes it from defaults, and nothing was filled in"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, warnings := filled(t, eve, space, tc.vm)
			if tc.warning == "" && warnings != "" || !strings.Contains(warnings, tc.warning) {
				t.Errorf("warnings are %q, want %q", warnings, tc.warning)
			}
			name := got.GetName()
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			if out := harness.Kubectl(t, stencil.Plane, eve, "", "--namespace="+space, "get", "virtualmachine", name); !strings.Contains(out.Stderr, "NotFound") {
				t.Fatalf("it is stored: %s%s", out.Stdout, out.Stderr)
			}
			out := harness.Must(t, stencil.Plane, eve, tc.vm, "--namespace="+space, "create", "-f", "-")
			if strings.Contains(tc.warning, "libvirt rejects") && !strings.Contains(out.Stderr, tc.warning) {
				t.Errorf("the webhook warns with %q", out.Stderr)
			}
			is := stored(t, space, name)
			if tc.unfilled {
				if text := at(t, got, "spec"); strings.Contains(text, "pciAddress") || got.GetAnnotations()[contract.AnnotationDefaultsApplied] != "" || domain(t, got, "machine", "type") != "q35" {
					t.Errorf("it is filled in: %s", text)
				}
				return
			}
			compare(t, got, is, tc.kubevirts, random)
			want, have := record(t, is), record(t, got)
			if slices.Contains(tc.kubevirts, aliasPath) {
				delete(want, "machine")
			}
			if fmt.Sprint(want) != fmt.Sprint(have) || len(have) == 0 {
				t.Errorf("the annotation is %v, stored is %v", have, want)
			}
			if want, have := is.GetAnnotations()[contract.AnnotationDefaultsFailed], got.GetAnnotations()[contract.AnnotationDefaultsFailed]; want != have {
				t.Errorf("the failure is %q, stored is %q", have, want)
			}

			// The response can be stored itself: nothing is left to fill in, and the UUID stays.
			harness.Must(t, stencil.Plane, eve, "", "--namespace="+space, "delete", "virtualmachine", name)
			text, err := got.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			harness.Must(t, stencil.Plane, eve, string(text), "--namespace="+space, "create", "-f", "-")
			compare(t, got, stored(t, space, name), tc.kubevirts)
		})
	}
	discardAll()
}

func TestTheEndpointNeedsItsOwnRightAndNoOther(t *testing.T) {
	eve, space := editor(t, "eve-of-rights")
	const preference = "apiVersion: instancetype.kubevirt.io/v1beta1\nkind: VirtualMachinePreference\nmetadata: {name: sata}\nspec: {devices: {preferredDiskBus: sata}}\n"
	harness.Must(t, stencil.Plane, eve, preference, "--namespace="+space, "create", "-f", "-")
	const vm = `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: own}, spec: {preference: {kind: VirtualMachinePreference, name: sata}, template: {spec: {
		domain: {memory: {guest: 1Gi}, devices: {disks: [{name: root, disk: {}}]}}, volumes: [{name: root, containerDisk: {image: registry.example.com/fedora}}]}}}}`
	viewer := harness.User(t, stencil.Plane, "endpoint-viewer", gen.Role(space, "view"))
	const forbidden = `Error from server (Forbidden): defaults.subresources.template.kubevirt.io is forbidden: User "endpoint-viewer" cannot create resource "defaults" in API group "subresources.template.kubevirt.io" in the namespace "`
	if out := post(t, viewer, space, vm); out.Code == 0 || !strings.HasPrefix(out.Stderr, forbidden+space+`"`) {
		t.Errorf("a viewer: exit %d: %s", out.Code, out.Stderr)
	}
	if out := post(t, eve, "team-a", vm); out.Code == 0 || !strings.Contains(out.Stderr, "(Forbidden)") {
		t.Errorf("in another namespace: exit %d: %s", out.Code, out.Stderr)
	}

	// An application sees nothing of the cluster that it may not read itself.
	app := harness.User(t, stencil.Plane, "endpoint-app")
	harness.Grant(t, stencil.Plane, app, space, rbacv1.PolicyRule{APIGroups: []string{"subresources.template.kubevirt.io"}, Resources: []string{"defaults"}, Verbs: []string{"create"}})
	harness.Eventually(t, "the right is known", func() error {
		if out := post(t, app, space, vm); out.Code != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
	got, warnings := filled(t, app, space, vm)
	if text := at(t, got, "spec"); strings.Contains(text, `"bus"`) || !version.MatchString(domain(t, got, "machine", "type")) {
		t.Errorf("the application sees %s", text)
	}
	if want := fmt.Sprintf(`spec.preference: Not found: "VirtualMachinePreference %s/sata": user "endpoint-app" may not get it`, space); !strings.Contains(strings.ReplaceAll(warnings, `\"`, `"`), want) {
		t.Errorf("warnings are %q, want %q", warnings, want)
	}
	if got, _ := filled(t, eve, space, vm); domain(t, got, "devices", "disks", "root", "disk", "bus") != "sata" {
		t.Errorf("who may read the preference sees %s", at(t, got, "spec"))
	}
	if out := harness.Must(t, stencil.Plane, nil, "", "--namespace="+space, "get", "virtualmachines", "-o", "name"); out.Stdout != "" {
		t.Errorf("stored are %s", out.Stdout)
	}
}

func TestTheEndpointRejectsWhatTheWebhookRejects(t *testing.T) {
	eve, space := editor(t, "eve-of-errors")
	for name, tc := range map[string]struct{ vm, want string }{
		"two disks at one address": {
			vm: strings.Replace(vmWith("twice", ", pciAddress: '0000:09:00.0'"), "data, disk: {bus: virtio", "data, disk: {bus: virtio, pciAddress: '0000:09:00.0'", 1),
			want: `The VirtualMachine "twice" is invalid: spec.template.spec.domain.devices.disks[1].disk.pciAddress: Invalid value: "0000:09:00.0": ` +
				`the disk at spec.template.spec.domain.devices.disks[1] and the disk at spec.template.spec.domain.devices.disks[0] both have address 0000:09:00.0`,
		},
		"a quantity that is none": {
			vm:   strings.Replace(vmWith("much", ""), "guest: 1Gi", "guest: much", 1),
			want: `The VirtualMachine "much" is invalid: spec.template.spec.domain.memory.guest: Invalid value: quantities must match the regular expression`,
		},
		"another kind": {
			vm:   strings.Replace(vmWith("other", ""), "kind: VirtualMachine", "kind: Pod", 1),
			want: "Error from server (BadRequest): the body is no VirtualMachine: apiVersion must be kubevirt.io/v1 and kind VirtualMachine",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if out := post(t, eve, space, strings.Replace(tc.vm, "namespace: team-a", "namespace: "+space, 1)); out.Code == 0 || !strings.HasPrefix(out.Stderr, tc.want) {
				t.Errorf("exit %d: %s\nwant %s", out.Code, out.Stderr, tc.want)
			}
		})
	}
	if out := post(t, eve, space, vmWith("elsewhere", "")); !strings.HasPrefix(out.Stderr, `Error from server (BadRequest): the body is no VirtualMachine: it names namespace "team-a" and is sent to "`+space+`"`) {
		t.Errorf("exit %d: %s", out.Code, out.Stderr)
	}
}

// TestTheEndpointServesManyAtATime has clients post VMs of other shapes, which no cache has, while the defaulter is killed and started again.
func TestTheEndpointServesManyAtATime(t *testing.T) {
	eve, space := editor(t, "eve-of-many")
	vm := func(memory int) string {
		return strings.Replace(strings.Replace(vmWith("many", ""), "namespace: team-a", "namespace: "+space, 1), "guest: 1Gi", fmt.Sprintf("guest: %dMi", memory), 1)
	}
	first, _ := filled(t, eve, space, vm(1800))
	devices := func(vm *unstructured.Unstructured) string { return domain(t, vm, "devices") + domain(t, vm, "machine") }
	want := devices(first)
	if !strings.Contains(want, "pciAddress") {
		t.Fatalf("it is not filled in: %s", want)
	}
	const clients, each = 8, 12
	var (
		posting sync.WaitGroup
		mutex   sync.Mutex
		uuids   = map[string]bool{}
	)
	begin := time.Now()
	for client := range clients {
		posting.Go(func() {
			for i := range each {
				got, warnings := filled(t, eve, space, vm(1801+client*each+i))
				mutex.Lock()
				uuid := domain(t, got, "firmware", "uuid")
				if devices(got) != want || warnings != "" || uuid == "" || uuids[uuid] {
					t.Errorf("%s with UUID %q; %s", devices(got), uuid, warnings)
				}
				uuids[uuid] = true
				mutex.Unlock()
			}
		})
	}
	posting.Wait()
	t.Logf("%d VMs by %d clients in %v", clients*each, clients, time.Since(begin))

	restart := withoutDefaulter(t)
	defer restart()
	const gone = "Error from server (ServiceUnavailable): the defaulter does not answer; if this remains, see the container defaulter of stencil-apiserver; try again in a moment\n"
	if out := post(t, eve, space, vm(1950)); out.Code == 0 || out.Stderr != gone {
		t.Errorf("without the defaulter: exit %d: %s", out.Code, out.Stderr)
	}
	restart()
	if got, _ := filled(t, eve, space, vm(1950)); devices(got) != want {
		t.Errorf("after its return: %s", devices(got))
	}
	if out := harness.Must(t, stencil.Plane, nil, "", "--namespace="+space, "get", "virtualmachines", "-o", "name"); out.Stdout != "" {
		t.Errorf("stored are %s", out.Stdout)
	}
}

func TestTheEndpointFollowsTheNamespace(t *testing.T) {
	eve, space := editor(t, "eve-of-labels")
	vm := strings.Replace(vmWith("bare", ""), "namespace: team-a", "namespace: "+space, 1)
	mustKubectl(t, nil, "", "label", "namespace", space, "defaults.template.kubevirt.io/skip=true")
	got, warnings := filled(t, eve, space, vm)
	if domain(t, got, "machine", "type") != "q35" || warnings != "Warning: label defaults.template.kubevirt.io/skip of the namespace excludes it from defaults, and nothing was filled in\n" {
		t.Errorf("%s; %s", at(t, got, "spec"), warnings)
	}
	admin := harness.Kubectl(t, stencil.Plane, nil, vmWith("nowhere", ""), "create", "--raw", defaultsIn("nowhere"), "-f", "-")
	if admin.Code == 0 || !strings.Contains(admin.Stderr, "BadRequest") {
		t.Errorf("exit %d: %s", admin.Code, admin.Stderr)
	}
	admin = harness.Kubectl(t, stencil.Plane, nil, strings.Replace(vmWith("nowhere", ""), ", namespace: team-a", "", 1), "create", "--raw", defaultsIn("nowhere"), "-f", "-")
	if admin.Code == 0 || !strings.Contains(admin.Stderr, `Error from server (NotFound): namespaces "nowhere" not found`) {
		t.Errorf("exit %d: %s", admin.Code, admin.Stderr)
	}
}

func TestTheEndpointGeneratesMACAddressesWhereTheManagerDoes(t *testing.T) {
	restart := func(more ...string) {
		if err := stencil.APIServer.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := stencil.StartAPIServer(more...); err != nil {
			t.Fatal(err)
		}
	}
	restart("--defaulting-mac=generate")
	t.Cleanup(func() { restart() })
	eve, space := editor(t, "eve-of-addresses")
	vm := strings.Replace(vmWith("mac", ""), "namespace: team-a", "namespace: "+space, 1)
	seen := map[string]bool{}
	for range 3 {
		got, _ := filled(t, eve, space, vm)
		address := domain(t, got, "devices", "interfaces", "default", "macAddress")
		if parsed, err := net.ParseMAC(address); err != nil || parsed[0]&3 != 2 || seen[address] {
			t.Errorf("the address is %q, after %v", address, slices.Collect(maps.Keys(seen)))
		}
		seen[address] = true
	}
	mustKubectl(t, nil, pool, "create", "-f", "-")
	t.Cleanup(func() {
		harness.Must(t, stencil.Plane, nil, "", "delete", "mutatingwebhookconfiguration", "kubemacpool-mutator")
	})
	harness.Eventually(t, "the pool manager assigns addresses", func() error {
		if got, _ := filled(t, eve, space, vm); domain(t, got, "devices", "interfaces", "default", "macAddress") != "" {
			return errors.New("an address is still generated")
		}
		return nil
	})
}

// TestTheEndpointIsListedWhileItIsOn calls a server without a defaulter.
func TestTheEndpointIsListedWhileItIsOn(t *testing.T) {
	listed := regexp.MustCompile(`(?m)^defaults +kubevirt\.io/v1 +true +VirtualMachine$|^defaults .*subresources\.template\.kubevirt\.io/v1beta1 +true +VirtualMachine$`)
	// The test before has restarted the server, and the API server discovers both versions of its group again.
	harness.Eventually(t, "the endpoint is listed", func() error {
		if out := mustKubectl(t, nil, "", "api-resources", "--api-group=subresources.template.kubevirt.io", "--no-headers"); !listed.MatchString(out.Stdout) {
			return errors.New(out.Stdout)
		}
		return nil
	})
	if err := stencil.APIServer.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := stencil.StartAPIServer("--defaulting-socket="); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(stencil.APIServer.Stop(), stencil.StartAPIServer()); err != nil {
			t.Error(err)
		}
	})
	if out := mustKubectl(t, nil, "", "get", "--raw", "/apis/subresources.template.kubevirt.io/v1beta1"); strings.Contains(out.Stdout, `"defaults"`) {
		t.Errorf("discovery: %s", out.Stdout)
	}
	want := "Error from server (NotFound): defaults are not filled in on this cluster: its administrator has to set defaulting.enabled of the chart, which gives stencil-apiserver the flag --defaulting-socket\n"
	if out := post(t, nil, "team-a", vmWith("off", "")); out.Stderr != want {
		t.Errorf("exit %d: %s", out.Code, out.Stderr)
	}
}
