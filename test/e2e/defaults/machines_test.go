package defaults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/test/harness"
)

var (
	version = regexp.MustCompile(`^pc-q35-[0-9]`)
	// address is one behind a root port.
	address = regexp.MustCompile(`^0000:[0-9a-f]{2}:00\.0$`)
)

// addresses of disks and interfaces, by the names of the devices.
func addresses(t *testing.T, namespace, name string, disks, interfaces []string) map[string]string {
	t.Helper()
	vm := stored(t, namespace, name)
	found := map[string]string{}
	for _, disk := range disks {
		found[disk] = domain(t, vm, "devices", "disks", disk, "disk", "pciAddress")
	}
	for _, nic := range interfaces {
		found[nic] = domain(t, vm, "devices", "interfaces", nic, "pciAddress")
	}
	return found
}

func TestAMachineFromATemplateIsStoredAsTheGuestWillSeeIt(t *testing.T) {
	discard(t, "team-a", "web-1")
	manifest := vmObject("web-1", "team-a", "golden/fedora", "")
	mustKubectl(t, ada, manifest, "apply", "-f", "-")
	vm := stored(t, "team-a", "web-1")
	if got := domain(t, vm, "machine", "type"); !version.MatchString(got) {
		t.Errorf("the machine type is %q", got)
	}
	// The preference sets virtio as the bus of both disks, which the template leaves open.
	taken := map[string]string{}
	for device, at := range addresses(t, "team-a", "web-1", []string{"disk-1", "cloudinitdisk"}, []string{"default"}) {
		if !address.MatchString(at) || taken[at] != "" {
			t.Errorf("%s is at %q, like %q", device, at, taken[at])
		}
		taken[at] = device
	}
	if got := domain(t, vm, "cpu") + domain(t, vm, "memory"); got != "" {
		t.Errorf("beside an instance type there is %s", got)
	}
	var applied struct{ Defaulter, Libvirt, QEMU, KubeVirt, Machine string }
	if err := json.Unmarshal([]byte(vm.GetAnnotations()[contract.AnnotationDefaultsApplied]), &applied); err != nil {
		t.Fatal(err)
	}
	environment, err := sidecar.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if applied.Libvirt != environment.Libvirt || applied.QEMU != environment.QEMU || applied.Machine != domain(t, vm, "machine", "type") {
		t.Errorf("the annotation is %+v", applied)
	}

	for _, arguments := range [][]string{{"apply", "-f", "-"}, {"apply", "--server-side", "--field-manager=gitops", "-f", "-"}, {"apply", "--server-side", "--field-manager=gitops", "-f", "-"}, {"replace", "-f", "-"}} {
		mustKubectl(t, ada, manifest, arguments...)
		again := stored(t, "team-a", "web-1")
		if before, after := at(t, vm, "spec"), at(t, again, "spec"); before != after {
			t.Errorf("%v has changed the spec from\n%s\nto\n%s", arguments, before, after)
		}
		if vm.GetAnnotations()[contract.AnnotationDefaultsApplied] != again.GetAnnotations()[contract.AnnotationDefaultsApplied] {
			t.Errorf("%v has changed the annotation", arguments)
		}
	}
}

func TestTheSameManifestChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct{ arguments, force []string }{
		"client-side": {arguments: []string{"apply", "-f", "-"}},
		"server-side": {arguments: []string{"apply", "--server-side", "--field-manager=gitops", "-f", "-"}, force: []string{"--force-conflicts"}},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := tc.arguments
			discard(t, "team-a", "plain")
			mustKubectl(t, ada, vmWith("plain", ""), arguments...)
			first := stored(t, "team-a", "plain")
			if got := domain(t, first, "machine", "type"); !version.MatchString(got) {
				t.Errorf("the machine type is %q", got)
			}
			mustKubectl(t, ada, vmWith("plain", ""), arguments...)
			if second := stored(t, "team-a", "plain"); at(t, first, "spec") != at(t, second, "spec") || first.GetGeneration() != second.GetGeneration() {
				t.Errorf("the spec has changed from\n%s\nto\n%s", at(t, first, "spec"), at(t, second, "spec"))
			}
			// The update must not require a restart of a running guest, either.
			mustKubectl(t, ada, "", "patch", "virtualmachine", "plain", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`)
			harness.Eventually(t, "KubeVirt has created an instance", func() error {
				if got := at(t, stored(t, "team-a", "plain"), "status", "created"); got != "true" {
					return fmt.Errorf("KubeVirt has created no instance: %q", got)
				}
				return nil
			})
			runs := strings.Replace(vmWith("plain", ""), "Halted", "Always", 1)
			// The patch took the ownership of the run strategy from the applying field manager.
			mustKubectl(t, ada, runs, slices.Concat(arguments, tc.force)...)
			third := stored(t, "team-a", "plain")
			if before, after := at(t, first, "spec", "template"), at(t, third, "spec", "template"); before != after {
				t.Errorf("while it runs the template has changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

func TestADiskThatIsAddedLeavesTheOthersWhereTheyAre(t *testing.T) {
	discard(t, "team-a", "grows")
	mustKubectl(t, ada, vmWith("grows", ""), "apply", "-f", "-")
	before := addresses(t, "team-a", "grows", []string{"root", "data"}, []string{"default"})
	manifest := strings.Replace(vmWith("grows", ""), "disks:\n", "disks:\n          - {name: first, disk: {bus: virtio}}\n", 1)
	manifest = strings.Replace(manifest, "volumes:\n", "volumes:\n      - {name: first, emptyDisk: {capacity: 1Gi}}\n", 1)
	mustKubectl(t, ada, manifest, "apply", "-f", "-")
	after := addresses(t, "team-a", "grows", []string{"root", "data", "first"}, []string{"default"})
	for device, at := range before {
		if after[device] != at || at == "" {
			t.Errorf("%s was at %q and is at %q", device, at, after[device])
		}
		if after["first"] == at || !address.MatchString(after["first"]) {
			t.Errorf("the new disk is at %q, %s at %q", after["first"], device, at)
		}
	}
}

func TestOptingOut(t *testing.T) {
	discard(t, "team-a", "skips")
	mustKubectl(t, ada, strings.Replace(vmWith("skips", ""), "namespace: team-a", `namespace: team-a, annotations: {defaults.template.kubevirt.io/skip: "true"}`, 1), "create", "-f", "-")
	vm := stored(t, "team-a", "skips")
	if got := domain(t, vm, "machine", "type"); got != "q35" || strings.Contains(at(t, vm, "spec"), "pciAddress") {
		t.Errorf("a machine that wants none has %s", at(t, vm, "spec"))
	}

	mustKubectl(t, nil, "", "create", "namespace", "bare")
	mustKubectl(t, nil, "", "label", "namespace", "bare", "defaults.template.kubevirt.io/skip=true")
	discard(t, "bare", "plain")
	harness.Eventually(t, "the namespace gets no defaults", func() error {
		mustKubectl(t, nil, strings.Replace(vmWith("plain", ""), "namespace: team-a", "namespace: bare", 1), "--namespace=bare", "create", "-f", "-")
		vm := stored(t, "bare", "plain")
		if got := domain(t, vm, "machine", "type"); got != "q35" {
			mustKubectl(t, nil, "", "--namespace=bare", "delete", "virtualmachine", "plain")
			return fmt.Errorf("in a namespace that wants none the machine type is %q", got)
		}
		return nil
	})
}

// TestAWebhookBehindTheDefaultsIsReported registers a webhook that is never called, by its selector: what counts is its name.
func TestAWebhookBehindTheDefaultsIsReported(t *testing.T) {
	mustKubectl(t, nil, `{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "zzz-agents"}, "webhooks": [{"name": "agents.example.com",
		"admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {"url": "https://127.0.0.1:1/"}, "objectSelector": {"matchLabels": {"agents.example.com/none": "true"}},
		"rules": [{"apiGroups": ["kubevirt.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["virtualmachines"]}]}]}`, "create", "-f", "-")
	remove := sync.OnceFunc(func() { mustKubectl(t, nil, "", "delete", "mutatingwebhookconfiguration", "zzz-agents") })
	t.Cleanup(remove)
	reported := func(is bool) {
		t.Helper()
		const series = `stencil_installation_findings{level="warning",subject="MutatingWebhookConfiguration zzz-agents"} 1`
		harness.Eventually(t, fmt.Sprintf("%s is %t", series, is), func() error {
			text, err := stencil.Manager.Metrics(t.Context())
			if err == nil && strings.Contains(text, series) != is {
				err = errors.New("it is not")
			}
			return err
		})
	}
	reported(true)
	harness.Eventually(t, "an event says why", func() error {
		const want = "warning: may change VirtualMachines after Stencil has filled in their defaults, because its name sorts behind zz-stencil-defaults: give it a name"
		if got := mustKubectl(t, nil, "", "get", "events", "--namespace=default", "-o", "jsonpath={.items[*].message}").Stdout; !strings.Contains(got, want) {
			return errors.New(got)
		}
		return nil
	})
	remove()
	reported(false)
}

func TestAMachineOfAForeignArchitectureIsReported(t *testing.T) {
	discard(t, "team-a", "mainframe")
	manifest := strings.Replace(vmWith("mainframe", ""), "spec:\n      domain:", "spec:\n      architecture: s390x\n      domain:", 1)
	out := mustKubectl(t, ada, strings.Replace(manifest, "type: q35", "type: s390-ccw-virtio", 1), "create", "-f", "-")
	vm := stored(t, "team-a", "mainframe")
	if got := at(t, vm, "spec", "template", "spec", "architecture"); got != "s390x" {
		t.Fatalf("architecture %q in %s", got, at(t, vm, "spec"))
	}
	failed := at(t, vm, "metadata", "annotations", "defaults.template.kubevirt.io/failed")
	if !strings.HasPrefix(failed, "libvirt rejects the VM: ") || !strings.Contains(out.Stderr, "Warning: not all defaults that the guest sees were filled in: "+failed) {
		t.Errorf("annotation %q, output %s", failed, out.Stderr)
	}
	if domain(t, vm, "machine", "type") != "s390-ccw-virtio" || domain(t, vm, "cpu", "sockets") != "1" {
		t.Errorf("stored with %s", domain(t, vm))
	}
}

func TestMachinesThatNoGuestCanBeAreRefused(t *testing.T) {
	for what, want := range map[string]string{
		"architecture: riscv64":              `spec.template.spec.architecture: Invalid value: "riscv64": KubeVirt has the architectures amd64, arm64, s390x`,
		`resources: {limits: {cpu: "1e12"}}`: `spec.template.spec.domain.resources.limits.cpu: Invalid value: "1e12": must be between 0 and 4294967295`,
		`resources: {limits: {cpu: -3}}`:     `spec.template.spec.domain.resources.limits.cpu: Invalid value: "-3": must be between 0 and 4294967295`,
	} {
		manifest := strings.Replace(vmWith("impossible", ""), "spec:\n      domain:\n", "spec:\n      domain:\n        "+what+"\n", 1)
		if strings.HasPrefix(what, "architecture") {
			manifest = strings.Replace(vmWith("impossible", ""), "spec:\n      domain:", "spec:\n      "+what+"\n      domain:", 1)
		}
		out := kubectl(t, ada, manifest, "create", "--dry-run=server", "-f", "-")
		if out.Code == 0 || !strings.Contains(out.Stderr, want) {
			t.Errorf("%s: got %s%s, want %s", what, out.Stdout, out.Stderr, want)
		}
	}
}

func TestAMachineThatNobodyCanDefineIsRefused(t *testing.T) {
	manifest := strings.Replace(vmWith("twice", `, pciAddress: "0000:09:00.0"`), "{name: data, disk: {bus: virtio}}", `{name: data, disk: {bus: virtio, pciAddress: "0000:09:00.0"}}`, 1)
	discard(t, "team-a", "twice")
	out := kubectl(t, ada, manifest, "create", "-f", "-")
	if out.Code == 0 {
		t.Fatal("it was created")
	}
	for _, want := range []string{
		"is invalid", "spec.template.spec.domain.devices.disks[0]", "spec.template.spec.domain.devices.disks[1].disk.pciAddress", "0000:09:00.0",
	} {
		if !strings.Contains(out.Stderr, want) {
			t.Errorf("the refusal lacks %q:\n%s", want, out.Stderr)
		}
	}
}
