package road_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// A policy about sizes, with the ControllerRevisions that KubeVirt itself makes.
func TestAMachineIsJudgedByTheSizeThatKubeVirtGivesIt(t *testing.T) {
	size := func(cpus int) string {
		return fmt.Sprintf("apiVersion: instancetype.kubevirt.io/v1beta1\nkind: VirtualMachineClusterInstancetype\nmetadata: {name: elastic}\nspec: {cpu: {guest: %d}, memory: {guest: 4Gi}}\n", cpus)
	}
	discard(t, "elastic-1", "elastic-2")
	t.Cleanup(func() {
		kubectl(t, nil, "", "delete", "vmpol", "elastic", "--ignore-not-found")
		kubectl(t, nil, "", "delete", "virtualmachineclusterinstancetype", "elastic", "--ignore-not-found")
	})
	mustKubectl(t, nil, size(2), "apply", "-f", "-")
	const module = `package sizes

deny contains {"msg": sprintf("%v CPUs are more than 4", [cpus.count]), "field": cpus.field} if {
  some cpus in data.lib.cpus
  cpus.count > 4
}
`
	mustKubectl(t, nil, gen.Manifest(gen.Policy("elastic", module, gen.Spec("match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+namespaces.Of(t)+"}}}"))),
		"apply", "-f", "-")
	harness.Eventually(t, "the policy is active", func() error {
		var policy v1alpha1.VirtualMachinePolicy
		if err := json.Unmarshal([]byte(mustKubectl(t, nil, "", "get", "vmpol", "elastic", "-o", "json").Stdout), &policy); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionActive) {
			return fmt.Errorf("conditions: %v", policy.Status.Conditions)
		}
		return nil
	})

	mustKubectl(t, ada, vm("elastic-1", "golden/fedora", gen.Parameter("INSTANCETYPE", "elastic")), "create", "-f", "-")
	// KubeVirt retains the present instance type for it.
	harness.Eventually(t, "KubeVirt retains the instance type of the VM", func() error {
		status, _ := get(t, "elastic-1").Object["status"].(map[string]any)
		reference, _ := status["instancetypeRef"].(map[string]any)
		if reference["controllerRevisionRef"] == nil {
			return fmt.Errorf("status: %v", status)
		}
		return nil
	})
	mustKubectl(t, nil, size(64), "apply", "-f", "-")
	// A new VM gets the present size,
	harness.Eventually(t, "the policy judges by the present instance type", func() error {
		out := kubectl(t, ada, vm("elastic-2", "golden/fedora", gen.Parameter("INSTANCETYPE", "elastic")), "create", "--dry-run=server", "-f", "-")
		if out.Code == 0 || !strings.Contains(out.Stderr, "policy elastic (medium): 64 CPUs are more than 4 at spec.instancetype.name") {
			return fmt.Errorf("exit code %d: %s", out.Code, out.Stderr)
		}
		return nil
	})
	// the stored one retains its size on every change,
	mustKubectl(t, ada, "", "patch", "virtualmachine", "elastic-1", "--type=merge", `-p={"metadata":{"labels":{"a":"b"}}}`)
	// until a change requests the present size.
	out := kubectl(t, ada, "", "patch", "virtualmachine", "elastic-1", "--type=merge", `-p={"spec":{"instancetype":{"revisionName":null,"name":"u1.8xlarge"}}}`)
	if out.Code == 0 || !strings.Contains(out.Stderr, "policy elastic (medium)") {
		t.Errorf("exit code %d: %s", out.Code, out.Stderr)
	}
	revisions := mustKubectl(t, nil, "", "get", "controllerrevisions", "-o", "name").Stdout
	t.Logf("revisions: %s", revisions)
}

// Everything that stands against a VM comes in one denial: a field, a value, a parameter that the approval closes, and a policy.
func TestAllMistakesComeInOneDenial(t *testing.T) {
	namespace := namespaces.Of(t)
	discard(t, "mistaken")
	t.Cleanup(func() {
		kubectl(t, nil, "", "delete", "vmpol", "named-web", "--ignore-not-found")
		kubectl(t, nil, "", "delete", "templateapproval", namespace, "--ignore-not-found")
	})
	const module = `package named

deny contains {"msg": "its name must begin with web-", "field": "metadata.name"} if not startswith(input.object.metadata.name, "web-")

deny contains {"msg": "it has no owner", "field": "metadata.labels"} if not input.object.metadata.labels.owner
`
	mustKubectl(t, nil, gen.Manifest(
		gen.Policy("named-web", module, gen.Spec("match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+namespace+"}}}")),
		gen.Approval(namespace, gen.Governs(namespace), gen.Approves("golden/fedora"), gen.Spec("{parameters: [{name: INSTANCETYPE, allowed: [u1.small]}], overrides: [spec.runStrategy]}"))), "apply", "-f", "-")
	mustKubectl(t, nil, "", "wait", "--for=condition=Active", "templateapproval/"+namespace, "vmpol/named-web", "--timeout=60s")

	mistaken := vm("mistaken", "golden/fedora", gen.Parameter("INSTANCETYPE", "u1.8xlarge"), gen.Parameter("DATA_SOURCE_NAME", "rootkit"), gen.Spec("{template: {spec: {hostname: h}}}"))
	harness.Eventually(t, "approval and policy evaluate", func() error {
		out := kubectl(t, ada, mistaken, "create", "--namespace="+namespace, "-f", "-")
		if out.Code == 0 {
			return errors.New("it was created")
		}
		for _, want := range []string{
			"- it is not approved in namespace", "spec.template.spec.hostname: may not be written", `parameters[INSTANCETYPE]: `, `parameters[DATA_SOURCE_NAME]: Invalid value: "rootkit"`,
			"- policy named-web (medium): its name must begin with web- at metadata.name", "- policy named-web (medium): it has no owner at metadata.labels", "- policies have evaluated it before KubeVirt adds its defaults",
		} {
			if !strings.Contains(out.Stderr, want) {
				return fmt.Errorf("the denial lacks %q: %s", want, out.Stderr)
			}
		}
		return nil
	})
}
