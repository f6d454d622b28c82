package policies_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

const templateRef = "template.kubevirt.io/template-ref"

// vmSpec is the least that the definition of VirtualMachine accepts.
func vmSpec() object {
	return object{"runStrategy": "Halted", "template": object{"spec": object{"domain": object{"devices": object{}}}}}
}

// vm returns a VirtualMachine in JSON; a reference of nil leaves the annotation out.
func vm(version string, metadata object, reference any) string {
	if reference != nil {
		metadata["annotations"] = object{templateRef: reference}
	}
	return encode(object{"apiVersion": "kubevirt.io/" + version, "kind": "VirtualMachine", "metadata": metadata, "spec": vmSpec()})
}

// plain is a VirtualMachine without a template.
func plain(name string) string { return vm("v1", object{"name": name}, nil) }

// templated is a VirtualMachine with a reference.
func templated(name, reference string) string { return vm("v1", object{"name": name}, reference) }

// approval returns a TemplateApproval in JSON, of every template of namespace golden unless spec has templates.
func approval(name string, spec object) string {
	if spec["templates"] == nil {
		spec["templates"] = []any{object{"namespace": "golden", "selector": object{}}}
	}
	return encode(object{
		"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "TemplateApproval", "metadata": object{"name": name}, "spec": spec,
	})
}

// store stores an approval, and returns when Stencil has written it to the namespaces that it selects. When the test ends, the approval is deleted.
func store(t *testing.T, name string, spec object) {
	t.Helper()
	mustPass(t, acting(t, nil, "").apply(approval(name, spec)))
	t.Cleanup(func() { discardApproval(t, name) })
	eventually(t, "the approval is active", func() string {
		if got := active(t, name); got.Status != "True" {
			return fmt.Sprintf("condition Active of TemplateApproval %s is %+v", name, got)
		}
		return ""
	})
}

// approve stores an approval that denies, and returns when the API server enforces it in a namespace of its own that is listed beside those in spec,
// and in these. When the test ends, the approval is deleted, and the API server no longer enforces it.
func approve(t *testing.T, name string, spec object) {
	t.Helper()
	listed, _ := spec["namespaces"].([]any)
	spec["namespaces"] = append([]any{namespace(t)}, listed...)
	names := func(namespace any) bool {
		said := probe(t, namespace.(string)).Stderr
		return strings.Contains(strings.ReplaceAll(said, ",", ""), " "+name+" ")
	}
	// Cleanups run in the reverse order: the approval is deleted first.
	t.Cleanup(func() {
		for _, namespace := range spec["namespaces"].([]any) {
			eventually(t, "the API server does not act by approval "+name, func() string {
				if names(namespace) {
					return fmt.Sprintf("it does in namespace %s", namespace)
				}
				return ""
			})
		}
	})
	store(t, name, spec)
	for _, namespace := range spec["namespaces"].([]any) {
		if namespace == install.Namespace { // no approval covers it
			continue
		}
		eventually(t, "the API server acts by approval "+name, func() string {
			if !names(namespace) {
				return fmt.Sprintf("it does not in namespace %s", namespace)
			}
			return ""
		})
	}
}

// condition holds the relevant fields of a condition.
type condition struct{ Type, Status, Reason, Message string }

// active returns the condition Active of an approval, empty while there is none of its present generation.
func active(t *testing.T, approval string) condition {
	t.Helper()
	var stored struct {
		Metadata struct{ Generation int64 }
		Status   struct {
			Conditions []struct {
				condition
				ObservedGeneration int64
			}
		}
	}
	if err := json.Unmarshal([]byte(encode(acting(t, nil, "").get(allApprovals, approval).Object)), &stored); err != nil {
		t.Fatal(err)
	}
	for _, one := range stored.Status.Conditions {
		if one.Type == "Active" && one.ObservedGeneration == stored.Metadata.Generation {
			return one.condition
		}
	}
	return condition{}
}

// probe creates a VirtualMachine without a template as the stranger, in a dry run.
func probe(t *testing.T, namespace string) controlplane.Result {
	t.Helper()
	return dry(t, stranger, namespace).create(plain("probe"))
}

// needsTemplate is the denial of creating a VirtualMachine without a template; several approvals are separated by a comma and a space.
func needsTemplate(approval string) denial {
	return denial{"governed-machines", "VirtualMachines in a namespace that TemplateApproval " + approval + " governs are created from approved templates: " +
		"set annotation template.kubevirt.io/template-ref to NAMESPACE/NAME of one, and leave out spec"}
}

// frozen is the denial of changing the spec of a VirtualMachine that was stored without a template.
func frozen(approval string) denial {
	return denial{"governed-machines", "spec of a VirtualMachine without a template cannot be changed in a namespace that TemplateApproval " + approval +
		" governs: keep it as it is stored, or create a new VirtualMachine from an approved template"}
}

// unreadable is the denial of everything in a namespace that has the label without a readable annotation.
func unreadable(policy string) denial {
	return denial{policy, "annotation stencil.kubevirt.io/approvals of this governed namespace is missing or cannot be read, so nothing is allowed here: " +
		"wait until Stencil has written it, or see the conditions of its TemplateApprovals"}
}

// notDecided is the denial of what an approval may deny, in a namespace without the label.
var notDecided = denial{"undecided-namespaces", "a TemplateApproval may govern this namespace, and Stencil has not decided yet: try again in a moment; " +
	"while no manager of Stencil runs, a user who may update templateapprovals.stencil.kubevirt.io can set label stencil.kubevirt.io/governed of the namespace"}
