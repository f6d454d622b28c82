package virtualmachine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/template"
)

// Referring returns a rendered VirtualMachine with a reference to its template, the digest of the template, and the given values of parameters that
// are not sensitive: it can be created as it is where approvals require a template. The spec is not encoded again.
func Referring(rendered []byte, compiled *template.Compiled, at Reference, given map[string]string) (json.RawMessage, error) {
	var vm, metadata map[string]json.RawMessage
	annotations := map[string]string{}
	err := json.Unmarshal(rendered, &vm)
	if err == nil && vm["metadata"] != nil {
		err = json.Unmarshal(vm["metadata"], &metadata)
	}
	if err == nil && metadata["annotations"] != nil {
		err = json.Unmarshal(metadata["annotations"], &annotations)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was rendered: %w", err)
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return template.IsContract(key) })
	annotations[contract.AnnotationTemplateRef] = at.String()
	annotations[contract.AnnotationProcessed] = compiled.Digest()
	for parameter, value := range given {
		if !compiled.Sensitive(parameter) {
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
		return nil, fmt.Errorf("encoding the VirtualMachine: %w", err)
	}
	return raw, nil
}

// Untold returns the parameters whose values a VirtualMachine by Referring does not tell, though the user has given or seen them: the other objects
// or the message have them, and objects that the cluster creates with the VirtualMachine would have other ones.
func Untold(referring []byte, compiled *template.Compiled, binding *template.Binding, given map[string]string) ([]string, error) {
	vm, err := Decode(referring)
	if err != nil {
		return nil, fmt.Errorf("reading what was rendered: %w", err)
	}
	found, err := compiled.Match(vm)
	if err != nil {
		return nil, err
	}
	shown, bound, unused := found.Values(), binding.Values(), compiled.Unused()
	var untold []string
	for _, p := range compiled.Parameters() {
		value := bound[p.Name]
		text, shows := shown[p.Name]
		_, chosen := given[p.Name]
		switch {
		case shows && text == value, value == p.Value, chosen && !p.Sensitive, slices.Contains(unused, p.Name):
		case chosen, compiled.MessageShows(p.Name):
			untold = append(untold, p.Name)
		}
	}
	return untold, nil
}
