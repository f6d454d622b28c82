package outage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

func denied(t *testing.T, result controlplane.Result, want string) {
	t.Helper()
	if result.Code == 0 || !strings.Contains(result.Stderr, want) {
		t.Errorf("exit code %d, want a refusal with %q: %s%s", result.Code, want, result.Stdout, result.Stderr)
	}
}

func TestWithoutAManagerOnlyTemplatedVMsAreDenied(t *testing.T) {
	harness.Discard(t, stencil.Plane, team, "plain-sailing", "in-need", "stored-before")
	must(t, ada, team, rendered("stored-before"), "create", "-f", "-")
	start := withoutManager(t)

	denied(t, kubectl(t, ada, team, rendered("in-need"), "create", "-f", "-"), `failed calling webhook "render.template.kubevirt.io"`)
	must(t, ada, team, plain("plain-sailing"), "create", "-f", "-")
	must(t, ada, team, "", "label", "vm", "plain-sailing", "still=works")
	// Requests that do not match the webhook.
	must(t, ada, team, "", "label", "vm", "stored-before", "still=works")
	must(t, ada, team, "", "annotate", "vm", "stored-before", "still=works")
	for _, strategy := range []string{"Always", "Halted"} {
		must(t, ada, team, "", "patch", "vm", "stored-before", "--type=merge", "-p", `{"spec":{"runStrategy":"`+strategy+`"}}`)
	}
	const asked = `failed calling webhook "render.template.kubevirt.io"`
	denied(t, kubectl(t, ada, team, "", "patch", "vm", "stored-before", "--type=merge", "-p", `{"spec":{"template":{"spec":{"hostname":"h"}}}}`), asked)
	denied(t, kubectl(t, ada, team, "", "label", "vm", "stored-before", "vm.kubevirt.io/template-"), asked)
	denied(t, kubectl(t, ada, team, "", "annotate", "vm", "stored-before", "parameter.template.kubevirt.io/X=y"), asked)
	denied(t, kubectl(t, ada, team, rendered("stored-before"), "replace", "-f", "-"), asked)
	must(t, ada, team, "", "delete", "vm", "stored-before")
	start()
	must(t, ada, team, rendered("in-need"), "create", "-f", "-")
}

func TestWithoutAManagerNothingUnapprovedIsAdmitted(t *testing.T) {
	harness.Discard(t, stencil.Plane, vault, "stored", "in-need")
	harness.Eventually(t, "the approval is enforced", func() error {
		return harness.Complaint(unless(kubectl(t, ada, vault, plain("probe"), "create", "--dry-run=server", "-f", "-"), "not approved"))
	})
	must(t, ada, vault, rendered("stored"), "create", "-f", "-")
	lenient := warned(t)
	start := withoutManager(t)

	denied(t, kubectl(t, ada, vault, plain("attack"), "create", "-f", "-"), "ValidatingAdmissionPolicy 'stencil-governed-machines'")
	denied(t, kubectl(t, ada, vault, rendered("attack"), "create", "-f", "-"), "failed calling webhook")
	denied(t, kubectl(t, ada, vault, "", "patch", "vm", "stored", "--type=merge", "-p", `{"spec":{"template":{"spec":{"hostname":"h"}}}}`), "")
	denied(t, kubectl(t, ada, vault, "", "annotate", "vm", "stored", "template.kubevirt.io/template-ref-"), "")
	// The mark of a disk is protected, other claims are created, and no VM starts with a disk of unverified origin.
	const pvc = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: attack-claim, labels: {%s: a}}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	denied(t, kubectl(t, nil, vault, fmt.Sprintf(pvc, "kubevirt.io/created-by"), "create", "-f", "-"), "ValidatingAdmissionPolicy 'stencil-disk-provenance'")
	must(t, nil, vault, fmt.Sprintf(pvc, "app"), "create", "--dry-run=server", "-f", "-")
	denied(t, kubectl(t, nil, vault, instance, "create", "--dry-run=server", "--as=system:serviceaccount:kubevirt:kubevirt-controller", "-f", "-"),
		`failed calling webhook "virtualmachineinstance.validate.template.kubevirt.io"`)
	const asked = `failed calling webhook "virtualmachine.validate.template.kubevirt.io"`
	denied(t, kubectl(t, ada, vault, "", "label", "vm", "stored", "a=b"), asked)
	denied(t, kubectl(t, ada, vault, "", "patch", "vm", "stored", "--type=merge", "-p", `{"spec":{"runStrategy":"Manual"}}`), asked)
	// Where an approval only warns, an outage denies nothing.
	must(t, nil, lenient, plain("tolerated"), "create", "-f", "-")
	must(t, nil, lenient, "", "patch", "vm", "tolerated", "--type=merge", "-p", `{"spec":{"runStrategy":"Halted"}}`)
	if left := must(t, nil, vault, "", "get", "virtualmachines", "-o", "name"); strings.Contains(left, "attack") {
		t.Errorf("something was created: %s", left)
	}
	start()
	must(t, ada, vault, rendered("in-need"), "create", "-f", "-")
}

// instance is the VirtualMachineInstance of a VM with a disk, as virt-controller creates it.
const instance = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata:
  name: stored
  ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: stored, uid: 11111111-2222-3333-4444-555555555555, controller: true}]
spec:
  domain: {memory: {guest: 64Mi}, devices: {disks: [{name: root, disk: {bus: virtio}}]}}
  volumes: [{name: root, dataVolume: {name: stored}}]
`

// unless returns a complaint about a result that is not a denial with this text.
func unless(result controlplane.Result, want string) string {
	if result.Code == 0 || !strings.Contains(result.Stderr, want) {
		return "no refusal with " + want + ": " + result.Stdout + result.Stderr
	}
	return ""
}

// warned creates a namespace with an approval that warns, and returns it when requests get the warning.
func warned(t *testing.T) string {
	t.Helper()
	const name = "lenient"
	must(t, nil, name, "", "create", "namespace", name)
	t.Cleanup(func() { must(t, nil, name, "", "delete", "namespace", name, "--wait=false") })
	must(t, nil, name, gen.Manifest(gen.Approval(name, gen.Governs(name), gen.Approves("golden/fedora"), gen.Spec("enforcement: Warn"))), "apply", "-f", "-")
	t.Cleanup(func() { must(t, nil, name, "", "delete", "templateapproval", name) })
	harness.Eventually(t, "the approval warns", func() error {
		out := kubectl(t, nil, name, plain("probe"), "create", "--dry-run=server", "-f", "-")
		if out.Code != 0 || !strings.Contains(out.Stderr, "Warning: not approved") {
			return harness.Complaint("no warning yet: " + out.Stdout + out.Stderr)
		}
		return nil
	})
	return name
}

// A user who may update approvals can do so without a manager. No rule is relaxed by itself: the annotations of namespaces stay enforced.
func TestWithoutAManagerApprovalsAreChanged(t *testing.T) {
	const bay = "bay"
	approval := func(name, more string) string {
		return "apiVersion: stencil.kubevirt.io/v1alpha1\nkind: TemplateApproval\nmetadata: {name: " + name + "}\n" +
			"spec: {namespaces: [" + bay + "], templates: [{namespace: golden, name: fedora}]" + more + "}\n"
	}
	must(t, nil, bay, "", "create", "namespace", bay)
	t.Cleanup(func() {
		must(t, nil, bay, "", "delete", "templateapproval", "strict", "new", "broken", "--ignore-not-found")
		must(t, nil, bay, "", "delete", "namespace", bay, "--wait=false")
	})
	must(t, nil, bay, approval("strict", ""), "apply", "-f", "-")
	harness.Eventually(t, "the approval is enforced", func() error {
		return harness.Complaint(unless(kubectl(t, nil, bay, plain("probe"), "create", "--dry-run=server", "-f", "-"), "not approved"))
	})
	start := withoutManager(t)

	must(t, nil, bay, approval("strict", ", enforcement: Warn, overrides: [spec]"), "apply", "-f", "-")
	must(t, nil, bay, approval("new", ", enforcement: Audit"), "create", "-f", "-")
	must(t, nil, bay, "", "delete", "templateapproval", "new", "strict")
	// Errors that the definition and the policy detect are denied; an approval that only the manager can evaluate is stored, and permits nothing.
	denied(t, kubectl(t, nil, bay, approval("broken", ", namespaceSelector: {matchLabels: {stencil.kubevirt.io/governed: x}}"), "create", "-f", "-"),
		"spec.namespaceSelector: Stencil sets label stencil.kubevirt.io/governed on the namespaces that an approval selects")
	denied(t, kubectl(t, nil, bay, approval("broken", ", parameters: [{name: A}]"), "create", "-f", "-"), "at least one of anyValue")
	must(t, nil, bay, approval("broken", ", overrides: [spec.template.**], exemptSubjects: []"), "create", "-f", "-")

	denied(t, kubectl(t, nil, bay, plain("attack"), "create", "-f", "-"), "ValidatingAdmissionPolicy 'stencil-governed-machines'")
	must(t, nil, bay, "", "label", "namespace", bay, "stencil.kubevirt.io/governed=false", "--overwrite")
	must(t, nil, bay, "", "annotate", "namespace", bay, "stencil.kubevirt.io/approvals-")
	harness.Eventually(t, "the namespace is free", func() error {
		return harness.Complaint(kubectl(t, nil, bay, plain("freed"), "create", "--dry-run=server", "-f", "-").Stderr)
	})
	start()

	harness.Eventually(t, "the manager reports the approval that it cannot read", func() error {
		ready := must(t, nil, bay, "", "get", "templateapproval", "broken", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]}`)
		if !strings.Contains(ready, `"status":"False"`) || !strings.Contains(ready, "spec.overrides[0]") {
			return harness.Complaint("condition Ready is " + ready)
		}
		return nil
	})
	// It denies, and approves nothing.
	for _, manifest := range []string{plain("attack"), rendered("attack")} {
		harness.Eventually(t, "the approval approves nothing", func() error {
			return harness.Complaint(unless(kubectl(t, nil, bay, manifest, "create", "--dry-run=server", "-f", "-"), "approve"))
		})
	}
}
