package defaults

import (
	"encoding/json"
	"fmt"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/machine"
)

// applied is what the annotation of that name says.
type applied struct {
	Defaulter string `json:"defaulter"`
	Libvirt   string `json:"libvirt"`
	QEMU      string `json:"qemu"`
	KubeVirt  string `json:"kubevirt"`
	// Machine is the machine type, its version where that is known.
	Machine string `json:"machine,omitempty"`
}

const machineTypePath = "spec.template.spec.domain.machine.type"

// record is the annotation for an answer to a machine.
func record(object map[string]any, response *defaulting.Response) (string, error) {
	a := applied{
		Defaulter: response.Environment.Defaulter,
		Libvirt:   response.Environment.Libvirt,
		QEMU:      response.Environment.QEMU,
		KubeVirt:  response.Environment.KubeVirt,
		Machine:   machine.StringAt(mapAt(object, domainAt.child("machine")...), "type"),
	}
	for _, set := range response.Set {
		if set.Path == machineTypePath {
			a.Machine, _ = set.Value.(string)
		}
	}
	text, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("writing the annotation %s: %w", contract.AnnotationDefaultsApplied, err)
	}
	return string(text), nil
}

// stamp makes the webhook's two annotations what they should be, whatever was sent.
// An empty text is for one that should not be there.
func stamp(vm machine.Machine, p *patch, applied, failed string) {
	want := map[string]string{contract.AnnotationDefaultsApplied: applied, contract.AnnotationDefaultsFailed: failed}
	at := pointer{"metadata", "annotations"}
	if vm.Annotations == nil {
		annotations := map[string]any{}
		for key, value := range want {
			if value != "" {
				annotations[key] = value
			}
		}
		if len(annotations) > 0 && vm.Metadata != nil {
			p.put(vm.Metadata, at[:1], "annotations", annotations)
		}
		return
	}
	for _, key := range []string{contract.AnnotationDefaultsApplied, contract.AnnotationDefaultsFailed} {
		switch value := want[key]; {
		case value == "":
			p.drop(vm.Annotations, at, key)
		case vm.Annotations[key] != value:
			p.put(vm.Annotations, at, key, value)
		}
	}
}
