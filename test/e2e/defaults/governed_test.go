package defaults_test

import (
	"fmt"
	"strings"
	"testing"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/test/harness"
)

// conforms waits until the audit has found count conforming VMs, and none that violate.
func conforms(t *testing.T, count int) {
	t.Helper()
	harness.Eventually(t, "the audit finds every machine conforming", func() error {
		want := fmt.Sprint(count)
		good := metric(t, `stencil_audit_machines{approval="vault",result="conforming"}`)
		bad := metric(t, `stencil_audit_machines{approval="vault",result="violating"}`)
		if good != want || bad != "0" && bad != "" {
			return fmt.Errorf("%s conform and %s do not; want %s and 0\n%s", good, bad, want,
				kubectl(t, nil, "", "get", "templateapproval", "vault", "-o", "jsonpath={.status}").Stdout)
		}
		return nil
	})
}

func TestDefaultsAreApproved(t *testing.T) {
	discard(t, "vault", "good")
	mustKubectl(t, ada, vmObject("good", "vault", "golden/pinned", ""), "--namespace=vault", "apply", "-f", "-")
	vm := stored(t, "vault", "good")
	if !version.MatchString(domain(t, vm, "machine", "type")) || !address.MatchString(domain(t, vm, "devices", "disks", "root", "disk", "pciAddress")) {
		t.Errorf("it is stored with %s", domain(t, vm))
	}
	// The seed has no disk in the template, and the template no network.
	if domain(t, vm, "devices", "disks", "seed", "disk", "bus") == "" || domain(t, vm, "devices", "interfaces", "default", "masquerade") == "" {
		t.Errorf("KubeVirt's own defaults are missing: %s", domain(t, vm))
	}
	conforms(t, 1)
	mustKubectl(t, ada, vmObject("good", "vault", "golden/pinned", ""), "--namespace=vault", "apply", "-f", "-")
	mustKubectl(t, ada, "", "--namespace=vault", "patch", "virtualmachine", "good", "--type=merge", "--patch", `{"spec": {"runStrategy": "Manual"}}`)
	if again := stored(t, "vault", "good"); at(t, vm, "spec", "template") != at(t, again, "spec", "template") {
		t.Errorf("the template has changed from\n%s\nto\n%s", at(t, vm, "spec", "template"), at(t, again, "spec", "template"))
	}
	conforms(t, 1)
}

// Users must not bypass an approval by writing what defaulting writes.
func TestNobodyWritesDefaultsByHand(t *testing.T) {
	discard(t, "vault", "attack", "victim")
	spec := func(domain string) string {
		return "spec: {template: {spec: {domain: {" + domain + "}}}}\n"
	}
	for name, tc := range map[string]struct{ written, want string }{
		"a machine type":           {spec("machine: {type: pc-q35-2.1}"), "spec.template.spec.domain.machine.type"},
		"the very version":         {spec("machine: {type: " + canonical(t) + "}"), "spec.template.spec.domain.machine.type"},
		"an address":               {spec(`devices: {disks: [{name: root, disk: {pciAddress: "0000:07:00.0"}}]}`), "spec.template.spec.domain.devices.disks[name=root].disk.pciAddress"},
		"a disk for a volume":      {spec("devices: {disks: [{name: seed, disk: {bus: sata}}]}"), "spec.template.spec.domain.devices.disks[name=seed]"},
		"sockets":                  {spec("cpu: {sockets: 1}"), "spec.template.spec.domain.cpu.sockets"},
		"a random number device":   {spec("devices: {rng: {}}"), "spec.template.spec.domain.devices.rng"},
		"the wish for no defaults": {"    defaults.template.kubevirt.io/skip: \"true\"\n", "metadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			out := kubectl(t, ada, vmObject("attack", "vault", "golden/pinned", tc.written), "--namespace=vault", "create", "-f", "-")
			if out.Code == 0 || !strings.Contains(out.Stderr, tc.want) {
				t.Errorf("exit %d: %s", out.Code, out.Stderr)
			}
		})
	}

	mustKubectl(t, ada, vmObject("victim", "vault", "golden/pinned", ""), "--namespace=vault", "create", "-f", "-")
	before := stored(t, "vault", "victim")
	for name, patch := range map[string]string{
		"a machine type":       `[{"op": "replace", "path": "/spec/template/spec/domain/machine/type", "value": "pc-q35-2.1"}]`,
		"an address":           `[{"op": "replace", "path": "/spec/template/spec/domain/devices/disks/0/disk/pciAddress", "value": "0000:1f:00.0"}]`,
		"sockets":              `[{"op": "replace", "path": "/spec/template/spec/domain/cpu/sockets", "value": 64}]`,
		"the firmware's UUID":  `[{"op": "replace", "path": "/spec/template/spec/domain/firmware/uuid", "value": "00000000-0000-4000-8000-000000000000"}]`,
		"memory":               `[{"op": "replace", "path": "/spec/template/spec/domain/memory/guest", "value": "64Gi"}]`,
		"a device beside them": `[{"op": "add", "path": "/spec/template/spec/domain/devices/watchdog", "value": {"name": "bark", "i6300esb": {"action": "poweroff"}}}]`,
	} {
		t.Run(name+" by an update", func(t *testing.T) {
			out := kubectl(t, ada, "", "--namespace=vault", "patch", "virtualmachine", "victim", "--type=json", "--patch", patch)
			if out.Code == 0 || !strings.Contains(out.Stderr, "not approved") {
				t.Errorf("exit %d: %s", out.Code, out.Stderr)
			}
		})
	}
	if after := stored(t, "vault", "victim"); at(t, before, "spec") != at(t, after, "spec") {
		t.Errorf("the spec has changed from\n%s\nto\n%s", at(t, before, "spec"), at(t, after, "spec"))
	}
	// A record that a user writes has no effect.
	mustKubectl(t, ada, "", "--namespace=vault", "annotate", "--overwrite", "virtualmachine", "victim", contract.AnnotationDefaultsApplied+"=forged")
	if got := stored(t, "vault", "victim").GetAnnotations()[contract.AnnotationDefaultsApplied]; got != before.GetAnnotations()[contract.AnnotationDefaultsApplied] {
		t.Errorf("the record is %q", got)
	}
}

// canonical returns the version of machine type q35 here.
func canonical(t *testing.T) string {
	t.Helper()
	environment, err := sidecar.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range environment.Machines["amd64"] {
		if version, found := strings.CutPrefix(name, "q35="); found {
			return version
		}
	}
	t.Fatalf("there is no q35 in %v", environment.Machines)
	return ""
}

// An approval evaluates all that an update changes, so an update must not add defaults that the user did not request.
func TestAnUpdateOfAMachineWithoutDefaultsIsNotRefused(t *testing.T) {
	discard(t, "vault", "bare")
	restart := withoutDefaulter(t)
	defer restart()
	mustKubectl(t, ada, vmObject("bare", "vault", "golden/pinned", ""), "--namespace=vault", "create", "-f", "-")
	restart()
	before := stored(t, "vault", "bare")
	mustKubectl(t, ada, "", "--namespace=vault", "patch", "virtualmachine", "bare", "--type=merge", "--patch", `{"spec": {"runStrategy": "Manual"}}`)
	after := stored(t, "vault", "bare")
	if at(t, before, "spec", "template") != at(t, after, "spec", "template") || at(t, after, "spec", "runStrategy") != "Manual" {
		t.Errorf("the spec has changed from\n%s\nto\n%s", at(t, before, "spec"), at(t, after, "spec"))
	}
	conforms(t, 1)
}
