package audit

import (
	"encoding/json"
	"fmt"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// stored returns a VirtualMachine of the golden template as it is stored: rendered, with its record, and with the fields that KubeVirt adds to every
// one.
func stored(golden *v1beta1.VirtualMachineTemplate, compiled *template.Compiled, namespace, name string) ([]byte, error) {
	values := map[string]string{"INSTANCETYPE": "u1.medium"}
	bound, err := compiled.BindName(name, values)
	if err != nil {
		return nil, fmt.Errorf("binding the name of a VM: %w", err)
	}
	binding, err := compiled.Bind(map[string]string{"INSTANCETYPE": values["INSTANCETYPE"], "NAME": bound["NAME"]})
	if err != nil {
		return nil, fmt.Errorf("binding the parameters of a VM: %w", err)
	}
	rendered, err := compiled.Render(binding)
	if err != nil {
		return nil, fmt.Errorf("rendering a VM: %w", err)
	}
	object := rendered.Object()
	record := machine.Record{Namespace: golden.Namespace, Name: golden.Name, UID: "5d0a3c1e-8f0b-4c37-9a51-2f8f8b1f3f10", Generation: 1, Digest: compiled.Digest()}
	object["metadata"] = map[string]any{
		"namespace": namespace,
		"name":      name,
		"labels":    record.Labels(),
		"annotations": map[string]string{
			contract.AnnotationTemplateRef:                      golden.Namespace + "/" + golden.Name,
			contract.AnnotationRendered:                         record.String(),
			contract.AnnotationParameterPrefix + "INSTANCETYPE": values["INSTANCETYPE"],
			"kubevirt.io/latest-observed-api-version":           "v1",
			"kubevirt.io/storage-observed-api-version":          "v1",
		},
	}
	guest := object["spec"].(map[string]any)["template"].(map[string]any)
	guest["metadata"] = map[string]any{"annotations": map[string]any{"kubevirt.io/pci-topology-version": "v3"}}
	spec := guest["spec"].(map[string]any)
	spec["architecture"] = "amd64"
	domain := spec["domain"].(map[string]any)
	domain["machine"] = map[string]any{"type": "q35"}
	domain["firmware"] = map[string]any{"uuid": "3c3f1d53-1f7c-4f8b-9a0b-7a2f5c6d7e88", "serial": "a8e6b7d0-7f0e-4a43-8d6c-0d4c3b6d1a55"}
	domain["resources"] = map[string]any{}
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding a VM: %w", err)
	}
	return encoded, nil
}
