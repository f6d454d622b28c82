package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	contract "github.com/vmstencil/stencil/api/template"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// referring returns a rendered VirtualMachine with a reference to its template, the digest of the template, and the given values of parameters that
// are not sensitive: it can be created as it is where approvals require a template. The spec is not encoded again.
func referring(found *templatecache.Template, made rendering, parameters map[string]string) (json.RawMessage, error) {
	var vm, metadata map[string]json.RawMessage
	annotations := map[string]string{}
	err := json.Unmarshal(made.rendered.JSON(), &vm)
	if err == nil {
		err = json.Unmarshal(vm["metadata"], &metadata)
	}
	if err == nil && metadata["annotations"] != nil {
		err = json.Unmarshal(metadata["annotations"], &annotations)
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading what was rendered: %w", err))
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return template.IsContract(key) })
	annotations[contract.AnnotationTemplateRef] = machine.Reference{Namespace: found.Namespace, Name: found.Name}.String()
	annotations[contract.AnnotationProcessed] = made.compiled.Digest()
	for parameter, value := range parameters {
		if !made.compiled.Sensitive(parameter) {
			annotations[contract.AnnotationParameterPrefix+parameter] = value
		}
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	if metadata["annotations"], err = json.Marshal(annotations); err == nil {
		vm["metadata"], err = json.Marshal(metadata)
	}
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(vm)
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("encoding the VirtualMachine: %w", err))
	}
	return raw, nil
}
