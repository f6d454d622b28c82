package policies_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/test/controlplane"
)

const templateRef = "template.kubevirt.io/template-ref"

// machineSpec is the least that the definition of VirtualMachine accepts.
func machineSpec() object {
	return object{"runStrategy": "Halted", "template": object{"spec": object{"domain": object{"devices": object{}}}}}
}

// machine is a VirtualMachine in JSON; a reference of nil leaves the annotation out.
func machine(version string, metadata object, reference any) string {
	if reference != nil {
		metadata["annotations"] = object{templateRef: reference}
	}
	return encode(object{"apiVersion": "kubevirt.io/" + version, "kind": "VirtualMachine", "metadata": metadata, "spec": machineSpec()})
}

// plain is a VirtualMachine without a template.
func plain(name string) string { return machine("v1", object{"name": name}, nil) }

// templated is a VirtualMachine with a reference.
func templated(name, reference string) string { return machine("v1", object{"name": name}, reference) }

// approval is a TemplateApproval in JSON, of every template of namespace golden unless spec says otherwise.
func approval(name string, spec object) string {
	if spec["templates"] == nil {
		spec["templates"] = []any{object{"namespace": "golden", "selector": object{}}}
	}
	return encode(object{
		"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "TemplateApproval", "metadata": object{"name": name}, "spec": spec,
	})
}

// approve stores an approval that denies, and returns when the API server acts by it: in a namespace of its own that is listed beside
// those in spec. When the test ends, the approval is deleted.
func approve(t *testing.T, name string, spec object) {
	t.Helper()
	marker := namespace(t)
	listed, _ := spec["namespaces"].([]any)
	spec["namespaces"] = append([]any{marker}, listed...)
	mustKubectl(t, approval(name, spec), "apply", "-f", "-")
	t.Cleanup(func() {
		mustKubectl(t, "", "delete", "templateapproval", name)
		err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return !strings.Contains(probe(t, marker).Stderr, " "+name+" "), nil
		})
		if err != nil {
			t.Errorf("the API server still acts by approval %s: %v", name, err)
		}
	})
	eventually(t, func() string { return needsTemplate(name).complaint(probe(t, marker)) })
}

// probe asks whether the stranger may create a machine without a template.
func probe(t *testing.T, namespace string) controlplane.Result {
	t.Helper()
	return kubectl(t, stranger, plain("probe"), "create", "--dry-run=server", "--namespace", namespace, "-f", "-")
}

// needsTemplate refuses to create a machine without a template.
func needsTemplate(approval string) refusal {
	return refusal{"governed-machines", "VirtualMachines in a namespace that TemplateApproval " + approval + " governs are created from approved templates: " +
		"set annotation template.kubevirt.io/template-ref to NAMESPACE/NAME of one, and leave out spec"}
}

// frozen refuses to change the spec of a machine that was stored without a template.
func frozen(approval string) refusal {
	return refusal{"governed-machines", "spec of a VirtualMachine without a template cannot be changed in a namespace that TemplateApproval " + approval +
		" governs: keep it as it is stored, or create a new VirtualMachine from an approved template"}
}
